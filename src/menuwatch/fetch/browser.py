"""What a browser on a platform sends: the model of a profile. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType
from typing import Literal

Kind = Literal["document", "fetch", "image"]
Engine = Literal["chromium", "firefox", "safari"]
Steps = Literal["tenths", "even"]
Status = Literal["current", "retired", "not yet released"]

# Names of values that the request supplies; a template line whose value is missing is left out.
LANGUAGE, SITE, STORAGE, GIVEN = "{accept-language}", "{sec-fetch-site}", "{sec-fetch-storage-access}", "{given}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One browser on one platform.

    `target` is curl_cffi's exact name for its TLS and HTTP/2. `templates` holds, for each kind of request, (header, value) in
    the browser's order: the places of cookies, length and what the request itself brings (`{given}`) are in it too.
    `language_steps` is how it weighs its languages; `http2_only` are headers, in lower case, that it leaves out over HTTP/1.1.
    `stream_weight` is the weight of its HTTP/2 streams where the target's own is not the browser's.
    `plausibility` multiplies the weight for proxies in a country (two letters, upper case).
    """

    name: str
    engine: Engine
    target: str
    platform: str
    user_agent: str
    weight: int
    language_steps: Steps
    accept_encoding: str
    released: date
    retires: date
    plausibility: Mapping[str, float]
    http2_only: frozenset[str]
    stream_weight: int | None
    templates: MappingProxyType[Kind, tuple[tuple[str, str], ...]]

    def is_current(self, today: date) -> bool:
        """Whether the profile is released and not retired on that day."""
        return self.status(today) == "current"

    def status(self, today: date) -> Status:
        """The profile's lifecycle status on that day."""
        if today < self.released:
            return "not yet released"
        return "current" if today < self.retires else "retired"

    def weight_in(self, country: str | None) -> float:
        """Relative weight for proxies in that country (two letters), regardless of release dates."""
        return self.weight * self.plausibility.get((country or "").upper(), 1.0)
