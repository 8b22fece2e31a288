"""Every setting, read once from the environment: its variable, its default, its unit, what it means.

`Settings.from_env` is the only reader; everything else is handed the values it needs. The fields stand in groups that inherit from one
another, so that they are one list in one order; `docs/reference/settings.md` lists the same fields, and a test holds the two together.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from menuwatch.core import setting_values as values
from menuwatch.core.environment import described, said_by, setting, values_of
from menuwatch.core.errors import Refused
from menuwatch.core.settings_sources import SourceSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(SourceSettings):
    """All settings of one process."""

    secret_key: tuple[str, ...] = setting(
        "SECRET_KEY",
        (),
        values.keys,
        "Key that seals passwords of proxies and alert channels; comma-separated, the first seals and all open. Unset: in clear.",
        secret=True,
    )
    image_hosts: tuple[str, ...] = setting(
        "IMAGE_HOSTS",
        ("images.dutchie.com", "s3-us-west-2.amazonaws.com", "images.weedmaps.com"),
        values.words,
        "Hosts that pictures are downloaded from, comma-separated; `*.example.com` stands for all below it.",
    )
    image_downloads: int = setting(
        "IMAGE_DOWNLOADS",
        2,
        values.whole(0, 100),
        "Identities that one worker downloads pictures with at once; 0: none.",
    )
    image_tries: int = setting(
        "IMAGE_TRIES", 4, values.whole(1, 100), "Times that a picture's address is asked before it is given up."
    )
    image_retry_seconds: float = setting(
        "IMAGE_RETRY_SECONDS",
        600.0,
        values.number(0, 86_400, "seconds"),
        "First wait before a picture is tried again, seconds; four times as long each time, up to a day.",
    )
    image_cache_mb: int = setting(
        "IMAGE_CACHE_MB",
        512,
        values.whole(0, 10_000_000, "MB"),
        "Room for pictures that were resized, on disk, MB; 0: none are kept.",
    )
    image_threads: int = setting(
        "IMAGE_THREADS", 2, values.whole(1, 64), "Pictures that the server resizes at the same time."
    )
    image_url_key: tuple[str, ...] = setting(
        "IMAGE_URL_KEY",
        (),
        values.keys,
        "Key that signs addresses of pictures; comma-separated, the first signs and all are taken. Unset: no signature is asked for.",
        secret=True,
    )
    image_presets: tuple[str, ...] = setting(
        "IMAGE_PRESETS",
        ("w=100", "w=200", "w=400", "w=800", "w=1600"),
        values.words,
        "Parameters that need no signature where IMAGE_URL_KEY is set, comma-separated, each as in an address: `w=200&h=200`.",
    )
    mail_url: str | None = setting(
        "MAIL_URL",
        None,
        values.mail_url,
        "Server that mails to shoppers go out by, as Apprise writes it: `mailtos://USER:PASSWORD@HOST?from=ADDRESS`. Unset: no mail, "
        "they are offered feeds only.",
        secret=True,
        example="mailtos://user:password@mail.example.org?from=menus@example.org",
    )
    alert_allow_private: int = setting(
        "ALERT_ALLOW_PRIVATE",
        0,
        values.whole(0, 1),
        "`1` lets alerts be sent to addresses that are not on the public internet.",
        example="1",
    )
    alert_timeout_seconds: float = setting(
        "ALERT_TIMEOUT_SECONDS",
        10.0,
        values.number(0.05, 60, "seconds"),
        "Longest wait for whoever receives an alert, seconds.",
    )
    alert_attempts: int = setting(
        "ALERT_ATTEMPTS", 10, values.whole(1, 100), "How often an alert is sent until its receiver takes it."
    )
    alert_retry_seconds: float = setting(
        "ALERT_RETRY_SECONDS",
        30.0,
        values.number(0, 86_400, "seconds"),
        "First wait before an alert is sent again, seconds; doubled with each try that fails, to 6 h.",
    )
    suspect_share: float = setting(
        "SUSPECT_SHARE", 0.4, values.number(0, 1), "A menu below this share of the store's usual size is quarantined."
    )

    @property
    def storage(self) -> Path:
        """Root of archive and images."""
        return self.storage_path if self.storage_path is not None else self.home / "storage"

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
        """Reads the environment; `overrides` (from the command line) win where they are not None.

        Raises Refused naming the variable, what it holds and what it may hold.
        """
        found = cls(**values_of(cls, os.environ if environ is None else environ, overrides))
        found._check_window()
        return found

    def to_env(self, environ: Mapping[str, str] | None = None) -> dict[str, str]:
        """An environment in which another process reads these very settings; whatever else `environ` (ours) holds is kept."""
        ours = os.environ if environ is None else environ
        others = {name: value for name, value in ours.items() if name not in {row[0] for row in described(Settings)}}
        return others | said_by(self)

    def _check_window(self) -> None:
        """Figures of days that are dropped meanwhile would be wrong, and nobody could tell."""
        days = self.analytics_window_days
        for variable, kept, also in (
            ("TASK_HISTORY_DAYS", self.task_history_days, ""),
            ("PRODUCT_HISTORY_DAYS", self.product_history_days, ", or 0 (for good)"),
        ):
            if kept < days and not (also and kept == 0):
                raise Refused(
                    f"{variable}={str(kept)!r} cannot be used: figures look back on {days} days (ANALYTICS_WINDOW_DAYS); "
                    f"it takes {days} days or more{also}, for example {variable}={days}"
                )


def variables() -> list[tuple[str, str, str]]:
    """(variable, default, meaning) of every setting, in the order of the class."""
    return described(Settings)
