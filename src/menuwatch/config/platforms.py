"""Settings that every platform has, read from `<PLATFORM>_BASE_URL`, `_ROBOTS`, `_APP_ID` and `_API_KEY`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from menuwatch.config import values
from menuwatch.core.errors import Refused

OWN_SITES = "own"
"""Value of `<PLATFORM>_BASE_URL` for platforms whose menus are on the shops' own sites: each shop is requested at its own."""

_PARSERS = {"base_url": values.url, "robots": values.robots, "app_id": str.strip, "api_key": str.strip}
_VARIABLE = re.compile(rf"([A-Z][A-Z0-9_]*)_({'|'.join(_PARSERS).upper()})")


@dataclass(frozen=True, kw_only=True)
class PlatformSettings:
    """Settings of one platform, which is never requested without a `base_url`; some platforms need `app_id` and `api_key`."""

    base_url: str = ""
    robots: str = "respect"
    app_id: str = ""
    api_key: str = field(default="", repr=False)


def platform_values(environ: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Values by platform and setting, unchecked: other software may have variables of these names."""
    found: dict[str, dict[str, str]] = {}
    for variable, text in environ.items():
        if text and (match := _VARIABLE.fullmatch(variable)):
            found.setdefault(match[1].lower(), {})[match[2].lower()] = text
    return found


def platform_variables(platforms: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The environment variables from which `platform_values` reads these."""
    return {f"{name}_{key}".upper(): text for name, given in platforms.items() for key, text in given.items() if text}


def platform_settings(name: str, given: Mapping[str, str], *, own_sites: bool = False) -> PlatformSettings:
    """The checked settings of one platform; `own_sites`: its `base_url` may be `own`. Raises Refused naming the variable."""
    checked: dict[str, str] = {}
    for spec in fields(PlatformSettings):
        text = given.get(spec.name, "")
        if not text:
            continue
        try:
            own = own_sites and spec.name == "base_url" and text == OWN_SITES
            checked[spec.name] = text if own else _PARSERS[spec.name](text)
        except ValueError as error:
            variable = f"{name}_{spec.name}".upper()
            hint = f", or {OWN_SITES!r} for each shop's own site" if own_sites and spec.name == "base_url" else ""
            raise Refused(f"invalid {variable}: {error}{hint}") from error
    return PlatformSettings(**checked)
