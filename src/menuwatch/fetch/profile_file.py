"""Read browser profiles from TOML and reject what no browser would send.

A profile that contradicts itself (a user agent of one version with the handshake of another) is easier to detect than none at
all, so all fields are checked against each other. `browsers.toml` documents the fields.
"""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from datetime import date, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar, get_args

from curl_cffi.requests.impersonate import BrowserType
from msgspec import Struct

from menuwatch.core.errors import Refused
from menuwatch.fetch.browser import GIVEN, LANGUAGE, SITE, STORAGE, Engine, Kind, Profile, Steps

_T = TypeVar("_T")
_Lines = tuple[tuple[str, str], ...]

KINDS: tuple[Kind, ...] = get_args(Kind)
_OF_PROFILE = ("{user-agent}", "{sec-ch-ua}", "{sec-ch-ua-mobile}", "{sec-ch-ua-platform}", "{accept-encoding}")
_OF_REQUEST = (LANGUAGE, SITE, STORAGE, GIVEN)
_HINTS = {
    "sec-ch-ua": "{sec-ch-ua}",
    "sec-ch-ua-mobile": "{sec-ch-ua-mobile}",
    "sec-ch-ua-platform": "{sec-ch-ua-platform}",
}
# Required: without these the request has no sender, or its own values have no position.
_NEEDED = {
    "user-agent": "{user-agent}",
    "accept-encoding": "{accept-encoding}",
    "accept-language": LANGUAGE,
    "cookie": GIVEN,
    "referer": GIVEN,
}
_NEEDED_FETCH = {"content-type": GIVEN, "content-length": GIVEN, "origin": GIVEN}

# Platform names in user agents, and the names that the client hint uses for them.
_PLATFORMS = {
    "Windows": "Windows NT 10.0; Win64; x64",
    "macOS": "Macintosh; Intel Mac OS X 10",
    "Linux": "X11; Linux x86_64",
}
_PHONES = ("iPhone", "iPad", "Android", "Mobile")
_CODINGS = ("gzip", "deflate", "br", "zstd")
_ZSTD_SINCE: Mapping[Engine, int | None] = {"chromium": 123, "firefox": 126, "safari": None}
_VERSIONS: Mapping[Engine, re.Pattern[str]] = {
    "chromium": re.compile(r" Chrome/(\d+)\.0\.0\.0 Safari/537\.36(?: Edg/\d+\.0\.0\.0)?$"),
    "firefox": re.compile(r"; rv:(?P<rv>\d+)\.0\) Gecko/20100101 Firefox/(?P=rv)\.0$"),
    "safari": re.compile(r" Version/(\d+)(?:\.\d+)+ Safari/605\.1\.15$"),
}
_AGENT_FORMS: Mapping[Engine, str] = {
    "chromium": "… Chrome/131.0.0.0 Safari/537.36, with Edg/131.0.0.0 at its end for Edge",
    "firefox": "…; rv:133.0) Gecko/20100101 Firefox/133.0",
    "safari": "… Version/18.0 Safari/605.1.15",
}
_TARGETS: Mapping[Engine, re.Pattern[str]] = {
    "chromium": re.compile(r"^chrome(\d+)a?$"),
    "firefox": re.compile(r"^firefox(\d+)$"),
    "safari": re.compile(r"^safari(\d\d)\d+$"),
}
# With a number, but not safari17_0: curl_cffi keeps such old spellings as aliases.
_EXACT = re.compile(r"^(?!.*\d_\d)[a-z]+\d")
_BRAND = re.compile(r'"([^"]+)";v="(\d+)"')
_NAME = re.compile(r"^[a-z0-9][a-z0-9.-]*$")
_HEADER = re.compile(r"^[A-Za-z0-9-]+$")
_MAX_PLAUSIBILITY = 10


class _Place(Struct, frozen=True):
    """Position in the file, for error messages."""

    path: Path
    what: str

    def refuse(self, field: str, wrong: str) -> NoReturn:
        raise Refused(f"{self.path}: {self.what}, {field}: {wrong}")


class _Family(Struct, frozen=True):
    engine: Engine
    language_steps: Steps
    http2_only: frozenset[str]
    stream_weight: int | None
    templates: Mapping[Kind, _Lines]


def targets() -> list[str]:
    """Targets that this curl_cffi knows by exact names, without the short names that change meaning between releases."""
    return [target.value for target in BrowserType if _EXACT.match(target.value)]


def read(path: Path) -> tuple[Profile, ...]:
    """Profiles of that file, in its order. Raises Refused."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Refused(f"{path}: the browser profiles cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refused(f"{path}: not a UTF-8 TOML file: {error}") from error
    top = _Place(path, "the file")
    _keys(content, top, needed=("families", "profiles"))
    tables = _typed(content["families"], dict, "families", top, "tables: [families.chromium]")
    families = {name: _family(table, _Place(path, f"family {name}")) for name, table in tables.items()}
    rows = _typed(content["profiles"], list, "profiles", top, "tables: [[profiles]]")
    if not rows:
        top.refuse("profiles", "at least one is required")
    found: dict[str, Profile] = {}
    for number, row in enumerate(rows, 1):
        place = _Place(path, f"profile number {number}")
        row = _typed(row, dict, "it", place, "a table: [[profiles]]")
        name = row.get("name")
        if isinstance(name, str) and name:
            place = _Place(path, f"profile {name}")
        profile = _profile(row, families, place)
        if profile.name in found:
            place.refuse("name", "duplicate name")
        found[profile.name] = profile
    return tuple(found.values())


def _family(table: Any, place: _Place) -> _Family:
    table = _typed(table, dict, "it", place, "a table")
    _keys(table, place, needed=("engine", "language_steps", "http2_only", "templates"), allowed=("stream_weight",))
    engine: Engine = _one_of(table["engine"], get_args(Engine), "engine", place)
    steps: Steps = _one_of(table["language_steps"], get_args(Steps), "language_steps", place)
    only = _typed(table["http2_only"], list, "http2_only", place, 'a list of headers such as ["Priority"]')
    if not all(isinstance(name, str) and _HEADER.match(name) for name in only):
        place.refuse("http2_only", f'expected a list of headers such as ["Priority"], not {only!r}')
    weight = table.get("stream_weight")
    if weight is not None and (isinstance(weight, bool) or not isinstance(weight, int) or not 1 <= weight <= 256):
        place.refuse("stream_weight", f"must be an integer from 1 to 256, not {weight!r}")
    kinds = _typed(table["templates"], dict, "templates", place, "a table")
    _keys(kinds, place, needed=KINDS, under="templates.")
    templates = {kind: _template(kinds[kind], kind, engine, place) for kind in KINDS}
    return _Family(engine, steps, frozenset(name.lower() for name in only), weight, templates)


def _template(lines: Any, kind: Kind, engine: Engine, place: _Place) -> _Lines:
    field = f"templates.{kind}"
    wanted = 'a list of [header, value] such as ["Accept", "*/*"]'
    lines = _typed(lines, list, field, place, wanted)
    seen: dict[str, str] = {}
    for line in lines:
        if not isinstance(line, list) or len(line) != 2 or not all(isinstance(part, str) and part for part in line):
            place.refuse(field, f"{line!r} is not allowed in {wanted}")
        name, value = line
        if not _HEADER.match(name):
            place.refuse(field, f"invalid header name {name!r}")
        if name.lower() in seen:
            place.refuse(field, f"{name} is repeated")
        if not value.isascii() or not value.isprintable():
            place.refuse(field, f"{name} contains characters that are invalid in a header: {value!r}")
        if ("{" in value or "}" in value) and value not in (*_OF_PROFILE, *_OF_REQUEST):
            place.refuse(
                field, f"unknown placeholder {value!r} for {name}: use one of: {', '.join(_OF_PROFILE + _OF_REQUEST)}"
            )
        seen[name.lower()] = value
    needed = _NEEDED | (_NEEDED_FETCH if kind == "fetch" else {}) | (_HINTS if engine == "chromium" else {})
    for header, value in needed.items():
        if header not in seen:
            place.refuse(field, f'["{header}", "{value}"] is missing')
        if seen[header] != value:
            place.refuse(field, f"{header} is {seen[header]!r}; it must be {value!r}")
    if "accept" not in seen:
        place.refuse(field, "Accept is missing")
    if engine != "chromium" and (hints := sorted(_HINTS.keys() & seen.keys())):
        place.refuse(field, f"{', '.join(hints)}: only Chromium has client hints, and the engine is {engine}")
    return tuple((name, value) for name, value in lines)


def _profile(row: Mapping[str, Any], families: Mapping[str, _Family], place: _Place) -> Profile:
    needed = (
        "name", "family", "target", "user_agent", "platform", "mobile", "accept_encoding", "weight", "released", "retires"
    )  # fmt: skip
    _keys(row, place, needed=needed, allowed=("brands", "plausibility"))
    name = _text(row, "name", place)
    if not _NAME.match(name):
        place.refuse(
            "name",
            f"{name!r} may contain only lower-case letters, digits, dots and dashes, for example chrome-131-windows",
        )
    family = families.get(_text(row, "family", place))
    if family is None:
        place.refuse(
            "family", f"unknown family {row['family']!r}: use one of: {', '.join(families) or '(none defined)'}"
        )
    engine, agent = family.engine, _text(row, "user_agent", place)
    version = _version(agent, engine, place)
    target = _target(_text(row, "target", place), engine, version, place)
    platform: str = _one_of(row["platform"], tuple(_PLATFORMS), "platform", place)
    if f"({_PLATFORMS[platform]}" not in agent:
        place.refuse(
            "user_agent",
            f"platform is {platform!r}, and its user agents begin with Mozilla/5.0 ({_PLATFORMS[platform]}",
        )
    _mobile(row["mobile"], agent, place)
    filled = {
        "{user-agent}": agent,
        "{accept-encoding}": _encoding(_text(row, "accept_encoding", place), engine, version, place),
        "{sec-ch-ua}": _brands(row.get("brands"), agent, engine, version, place),
        "{sec-ch-ua-mobile}": "?0",
        "{sec-ch-ua-platform}": f'"{platform}"',
    }
    weight = row["weight"]
    if isinstance(weight, bool) or not isinstance(weight, int) or weight < 1:
        place.refuse("weight", f"must be an integer above 0, not {weight!r}; to disable a profile, set retires")
    released, retires = _day(row, "released", place), _day(row, "retires", place)
    if retires <= released:
        place.refuse("retires", f"{retires} is not after released, {released}")
    return Profile(
        name=name,
        engine=engine,
        target=target,
        platform=platform,
        user_agent=agent,
        weight=weight,
        language_steps=family.language_steps,
        accept_encoding=filled["{accept-encoding}"],
        released=released,
        retires=retires,
        plausibility=_plausibility(row.get("plausibility", {}), place),
        http2_only=family.http2_only,
        stream_weight=family.stream_weight,
        templates=MappingProxyType(
            {
                kind: tuple((header, filled.get(value, value)) for header, value in lines)
                for kind, lines in family.templates.items()
            }
        ),
    )


def _version(agent: str, engine: Engine, place: _Place) -> int:
    if not agent.isascii() or not agent.isprintable():
        place.refuse("user_agent", f"it contains characters that are invalid in a header: {agent!r}")
    found = _VERSIONS[engine].search(agent)
    if found is None or not agent.startswith("Mozilla/5.0 ("):
        place.refuse("user_agent", f"{agent!r} is not of the form {_AGENT_FORMS[engine]} that the family's engine has")
    return int(found.group(1))


def _target(target: str, engine: Engine, version: int, place: _Place) -> str:
    known = targets()
    if target not in known:
        release = importlib.metadata.version("curl_cffi")
        place.refuse("target", f"unknown target {target!r}: curl_cffi {release} has {', '.join(known)}")
    fitting = _TARGETS[engine].match(target)
    right = [each for each in known if (one := _TARGETS[engine].match(each)) and int(one.group(1)) == version]
    # Safari's handshake changes with its major version: 17.2 sends the ClientHello of 17.0.
    if fitting is None or int(fitting.group(1)) != version:
        advice = f"use {' or '.join(right)}" if right else "this curl_cffi has no target for it"
        place.refuse("target", f"{target!r} is inconsistent with the user agent, {engine} {version}: {advice}")
    return target


def _mobile(mobile: Any, agent: str, place: _Place) -> None:
    if not isinstance(mobile, bool):
        place.refuse("mobile", f"must be true or false, not {mobile!r}")
    phone = [word for word in _PHONES if word in agent]
    if mobile or phone:
        place.refuse(
            "mobile", "only desktop browsers are supported: must be false, with the user agent of a desktop browser"
        )


def _encoding(accepted: str, engine: Engine, version: int, place: _Place) -> str:
    codings = accepted.split(", ")
    if not set(codings) <= set(_CODINGS) or len(set(codings)) != len(codings):
        place.refuse(
            "accept_encoding", f"{accepted!r} is not a list of {', '.join(_CODINGS)}, separated by a comma and a space"
        )
    since = _ZSTD_SINCE[engine]
    right = since is not None and version >= since
    if ("zstd" in codings) != right:
        has = f"has had zstd since {since}" if since is not None else "has no zstd"
        place.refuse("accept_encoding", f"{accepted!r}, and the user agent says {version}: {engine} {has}")
    return accepted


def _brands(brands: Any, agent: str, engine: Engine, version: int, place: _Place) -> str:
    if engine != "chromium":
        if brands is not None:
            place.refuse("brands", f"only Chromium has client hints, and the family's engine is {engine}")
        return ""
    example = f'"Chromium";v="{version}", …'
    if not isinstance(brands, str) or not brands:
        place.refuse("brands", f"must be a string; Chromium sends its brands, for example {example}")
    found = dict(_BRAND.findall(brands))
    joined = ", ".join(f'"{brand}";v="{number}"' for brand, number in _BRAND.findall(brands))
    if joined != brands or not brands.isascii() or not brands.isprintable():
        place.refuse("brands", f"{brands!r} is not a list of brands such as {example}")
    edge = re.search(r" Edg/(\d+)\.", agent)
    if edge is not None and int(edge.group(1)) != version:
        place.refuse("user_agent", f"Edg/{edge.group(1)} is inconsistent with Chrome/{version}")
    right, wrong = ("Microsoft Edge", "Google Chrome") if edge else ("Google Chrome", "Microsoft Edge")
    for brand in ("Chromium", right):
        if found.get(brand) != str(version):
            place.refuse("brands", f'{brands!r} lacks "{brand}";v="{version}", which is what the user agent says')
    if wrong in found:
        place.refuse("brands", f"{wrong} is inconsistent with a user agent of {right}")
    return brands


def _plausibility(table: Any, place: _Place) -> Mapping[str, float]:
    table = _typed(table, dict, "plausibility", place, "a table such as { US = 1.2 }")
    for country, factor in table.items():
        if not re.fullmatch(r"[A-Z]{2}", country):
            place.refuse("plausibility", f"expected a two-letter country code such as US, not {country!r}")
        if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor <= _MAX_PLAUSIBILITY:
            place.refuse(
                "plausibility",
                f"{country} is {factor!r}; it must be a number above 0, at most {_MAX_PLAUSIBILITY}",
            )
    return MappingProxyType({country: float(factor) for country, factor in table.items()})


def _keys(
    table: Mapping[str, Any], place: _Place, *, needed: Iterable[str], allowed: Collection[str] = (), under: str = ""
) -> None:
    needed = tuple(needed)
    for key in needed:
        if key not in table:
            place.refuse(f"{under}{key}", "it is missing")
    for key in table:
        if key not in needed and key not in allowed:
            place.refuse(f"{under}{key}", f"unknown field: use one of: {', '.join((*needed, *allowed))}")


def _typed(value: Any, kind: type[_T], field: str, place: _Place, wanted: str) -> _T:
    if not isinstance(value, kind):
        place.refuse(field, f"expected {wanted}, not {value!r}")
    return value


def _text(row: Mapping[str, Any], field: str, place: _Place) -> str:
    value = row[field]
    if not isinstance(value, str) or not value:
        place.refuse(field, f"expected a string in quotes, not {value!r}")
    return value


def _one_of(value: Any, choices: tuple[Any, ...], field: str, place: _Place) -> Any:
    if value not in choices:
        place.refuse(field, f"unknown value {value!r}: use one of: {', '.join(choices)}")
    return value


def _day(row: Mapping[str, Any], field: str, place: _Place) -> date:
    value = row[field]
    if not isinstance(value, date) or isinstance(value, datetime):
        place.refuse(field, f"expected a date without quotes such as 2027-09-30, not {value!r}")
    return value
