"""Settings that every platform but Dutchie has, read from `<PLATFORM>_BASE_URL`, `_ROBOTS`, `_APP_ID` and `_API_KEY`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields

from menuwatch.config import values
from menuwatch.config.environment import parse_environ, setting
from menuwatch.core.errors import Refused

OWN_SITES = "own"
"""Value of `<PLATFORM>_BASE_URL` for platforms whose menus are on the shops' own sites: each shop is requested at its own."""

ENTRY_POINTS = "menuwatch.platforms"
"""Group of entry points of installed packages; each names a subclass of `platforms.base.Platform`."""


@dataclass(frozen=True, kw_only=True)
class PlatformSettings:
    """Settings of one platform. `<PLATFORM>` is its name in upper case."""

    base_url: str = setting(
        "",
        values.url,
        "Scheme and host of the platform's API; `own` for platforms whose menus are on the shops' own sites. Unset: recorded "
        "responses can be imported, and no requests are sent.",
        example="https://api.example.com",
    )
    robots: str = setting(
        "respect",
        values.robots,
        "`respect` obeys robots.txt; `ignore` does not request it, which requires permission of the site.",
        example="respect",
    )
    app_id: str = setting(
        "", values.token, "Id of the application that the platform's API asks for. Unset: none is sent."
    )
    api_key: str = setting(
        "",
        values.token,
        "Key that the platform's API asks for. Unset: none is sent; some platforms need one (see their guides).",
        secret=True,
    )


_VARIABLE = re.compile(rf"([A-Z][A-Z0-9_]*)_({'|'.join(spec.name.upper() for spec in fields(PlatformSettings))})")


def prefix(name: str) -> str:
    """How the variables of a platform begin."""
    return f"{name.upper()}_"


def platform_values(environ: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Values by platform and setting, unchecked: other software may have variables of these names."""
    found: dict[str, dict[str, str]] = {}
    for variable, text in environ.items():
        if text and (match := _VARIABLE.fullmatch(variable)):
            found.setdefault(match[1].lower(), {})[match[2].lower()] = text
    return found


def is_platform_variable(variable: str) -> bool:
    """Whether `platform_values` reads this variable."""
    return _VARIABLE.fullmatch(variable) is not None


def platform_variables(platforms: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The environment variables from which `platform_values` reads these."""
    return {
        f"{prefix(name)}{key.upper()}": text for name, given in platforms.items() for key, text in given.items() if text
    }


def platform_settings(name: str, given: Mapping[str, str], *, own_sites: bool = False) -> PlatformSettings:
    """The checked settings of one platform; `own_sites`: its `base_url` may be `own`. Raises Refused naming the variable, its value
    (if it is not secret) and the valid values."""
    own = {"base_url": OWN_SITES} if own_sites and given.get("base_url", "").strip().lower() == OWN_SITES else {}
    try:
        return PlatformSettings(
            **parse_environ(PlatformSettings, platform_variables({name: given}), own, prefix=prefix(name))
        )
    except Refused as error:
        if own_sites and str(error).startswith(f"invalid {prefix(name)}BASE_URL"):
            raise Refused(
                f"{error}, or {prefix(name)}BASE_URL={OWN_SITES} to request each shop at its own site"
            ) from None
        raise
