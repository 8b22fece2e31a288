"""All settings, read once from the environment: variable, default, unit, meaning.

`Settings.from_env` is the only reader; other code gets the values it needs as parameters. The groups are independent of each other.
`docs/reference/settings.md` lists the same fields; a test compares the two.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from menuwatch.config import values
from menuwatch.config.environment import describe, format_environ, parse_environ, setting
from menuwatch.config.groups import ServerSettings, SourceSettings, WorkerSettings
from menuwatch.config.platforms import is_platform_variable, platform_values, platform_variables
from menuwatch.core.errors import Refused


@dataclass(frozen=True, kw_only=True)
class Settings(SourceSettings, WorkerSettings, ServerSettings):
    """All settings of one process: the groups, in the order server, worker, sources (dataclasses begin with the last base), then
    encryption, images, messages."""

    secret_key: tuple[str, ...] = setting(
        (),
        values.keys,
        "Key that encrypts passwords of proxies and alert channels; comma-separated, the first encrypts and all "
        "decrypt. Unset: stored in plain text.",
        secret=True,
    )
    image_hosts: tuple[str, ...] = setting(
        ("images.dutchie.com", "s3-us-west-2.amazonaws.com", "images.weedmaps.com", "media.sweedpos.com"),
        values.hosts,
        "Hosts that images are downloaded from, comma-separated; `*.example.com` includes all subdomains.",
    )
    image_downloads: int = setting(2, values.whole(0, 100), "Concurrent image downloads per worker; 0: none.")
    image_tries: int = setting(4, values.whole(1, 100), "Attempts to download an image before it is marked as failed.")
    image_retry_seconds: float = setting(
        600.0,
        values.number(0, 86_400, "seconds"),
        "First wait before an image download is retried, seconds; four times as long each time, up to a day.",
    )
    image_cache_mb: int = setting(
        512, values.whole(0, 10_000_000, "MB"), "Maximum size of the cache of resized images on disk, MB; 0: no cache."
    )
    image_threads: int = setting(2, values.whole(1, 64), "Images that the server resizes at the same time.")
    image_url_key: tuple[str, ...] = setting(
        (),
        values.keys,
        "Key that signs image URLs; comma-separated, the first signs and all are accepted. Unset: no signature "
        "needed, and sizes other than IMAGE_PRESETS are limited to 1 million pixels.",
        secret=True,
    )
    image_presets: tuple[str, ...] = setting(
        ("w=100", "w=200", "w=400", "w=800", "w=1600"),
        values.words,
        "Image parameters that need no signature and have no size limit, comma-separated, each as in a URL: "
        "`w=200&h=200`.",
    )
    mail_url: str | None = setting(
        None,
        values.mail_url,
        "Mail server for messages to shoppers, as an Apprise URL: `mailtos://USER:PASSWORD@HOST?from=ADDRESS`. Unset: "
        "no mail, only ntfy, web push and feeds.",
        secret=True,
        example="mailtos://user:password@mail.example.org?from=menus@example.org",
    )
    ntfy_server: str = setting(
        "https://ntfy.sh",
        values.ntfy_server,
        "ntfy server for alerts of shoppers: `https://HOST`, or `off`.",
        example="https://ntfy.example.org",
    )
    alert_allow_private: int = setting(
        0, values.whole(0, 1), "`1` allows sending alerts to private network addresses.", example="1"
    )
    alert_timeout_seconds: float = setting(
        10.0, values.number(0.05, 60, "seconds"), "Timeout for the receiver of an alert, seconds."
    )
    alert_attempts: int = setting(10, values.whole(1, 100), "Maximum attempts to send an alert.")
    alert_retry_seconds: float = setting(
        30.0,
        values.number(0, 86_400, "seconds"),
        "First wait before an alert is sent again, seconds; doubled after each failure, up to six hours.",
    )
    suspect_share: float = setting(
        0.4, values.number(0, 1), "A menu below this share of the store's usual size is quarantined."
    )
    platforms: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    """Settings by platform (`base_url`, `robots`, `app_id`, `api_key`), checked by the registry of platforms."""

    @property
    def storage(self) -> Path:
        """Root of archive and images with STORAGE_DRIVER=local, and of the caches."""
        return self.storage_path if self.storage_path is not None else self.home / "storage"

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
        """Reads the environment; `overrides` (from the command line) take precedence unless None.

        Raises Refused naming the variable, its value and the valid values.
        """
        given = os.environ if environ is None else environ
        ours = {variable for variable, _, _ in variables()}
        overrides.setdefault(
            "platforms", platform_values({name: text for name, text in given.items() if name not in ours})
        )
        settings = cls(**parse_environ(cls, given, overrides))
        settings._check_window()
        settings._check_limits()
        if settings.storage_driver == "s3" and settings.s3_bucket is None:
            raise Refused("STORAGE_DRIVER=s3 needs the bucket: set S3_BUCKET, for example S3_BUCKET=menuwatch")
        return settings

    def to_env(self, environ: Mapping[str, str] | None = None) -> dict[str, str]:
        """An environment from which another process reads the same settings; other variables of `environ` (ours) are kept."""
        ours = {variable for variable, _, _ in variables()}
        others = (os.environ if environ is None else environ).items()
        return {name: value for name, value in others if name not in ours and not is_platform_variable(name)} | {
            **format_environ(self),
            **platform_variables(self.platforms),
        }

    def _check_window(self) -> None:
        """Raises Refused when rows expire within the analytics window: figures for those days would be wrong without notice."""
        days = self.analytics_window_days
        for variable, kept, also in (
            ("TASK_HISTORY_DAYS", self.task_history_days, ""),
            ("PRODUCT_HISTORY_DAYS", self.product_history_days, ", or 0 (forever)"),
            ("PAYLOAD_DAYS", self.payload_days, ", or 0 (forever)"),
        ):
            if kept < days and not (also and kept == 0):
                raise Refused(
                    f"invalid {variable}={str(kept)!r}: analytics needs {days} days (ANALYTICS_WINDOW_DAYS): use {days} or more"
                    f"{also}, for example {variable}={days}"
                )

    def _check_limits(self) -> None:
        """Raises Refused where a minimum exceeds its maximum."""
        for minimum, low, maximum, high in (
            ("WORKERS_MIN", self.workers_min, "WORKERS_MAX", self.workers_max),
            ("CRAWL_GAP_MIN_SECONDS", self.crawl_gap_min_seconds, "CRAWL_GAP_MAX_SECONDS", self.crawl_gap_max_seconds),
        ):
            if low is not None and high is not None and low > high:
                raise Refused(f"invalid {minimum}={str(low)!r}: it exceeds {maximum} ({high})")


def variables() -> list[tuple[str, str, str]]:
    """(variable, default, meaning) of every setting, in the order of the class."""
    return describe(Settings)
