"""All platform adapters by name: those of this package, and those of installed packages (entry point `menuwatch.platforms`)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from msgspec import Struct

import menuwatch
from menuwatch.config.platforms import ENTRY_POINTS, PlatformSettings, platform_settings, prefix
from menuwatch.config.settings import Settings
from menuwatch.core.errors import Refused, unknown_value
from menuwatch.platforms.base import Platform

NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
NAME_RULE = "use lower-case letters, digits and single underscores, starting with a letter"

_DUTCHIE = "dutchie"
"""Its settings have names of their own."""


class Unusable(Struct, frozen=True):
    """A platform of an installed package that gives no adapter: stores of that platform are not crawled, everything else works."""

    name: str
    package: str
    problem: str

    def __str__(self) -> str:
        return f"platform {self.name!r} of the package {self.package} {self.problem}"


@cache
def built_in() -> tuple[type[Platform], ...]:
    """The adapters of this package; the first one is the default of tasks and schedules that name no platform. They are imported at
    the first call: that takes longer than most commands, which need none."""
    from menuwatch.platforms.dispense.adapter import Dispense
    from menuwatch.platforms.dovetail.adapter import Dovetail
    from menuwatch.platforms.dutchie.adapter import Dutchie
    from menuwatch.platforms.dutchie_plus.adapter import DutchiePlus
    from menuwatch.platforms.jane.adapter import Jane
    from menuwatch.platforms.joint.adapter import Joint
    from menuwatch.platforms.sweed.adapter import Sweed
    from menuwatch.platforms.weedmaps.adapter import Weedmaps

    return Dutchie, Weedmaps, DutchiePlus, Jane, Sweed, Dispense, Joint, Dovetail


def platforms(settings: Settings) -> dict[str, Platform]:
    """Every platform adapter by name, without unusable ones. Raises Refused for unusable settings."""
    return {adapter.name: _configured(adapter, settings) for adapter in (*built_in(), *installed()[0])}


def installed() -> tuple[list[type[Platform]], list[Unusable]]:
    """The adapters of installed packages by name, and the platforms whose package gives none."""
    adapters: dict[str, type[Platform]] = {}
    unusable = []
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: (entry.name, package_of(entry))):
        try:
            adapter = _load(entry)
            if adapter.name in adapters or any(adapter.name == known.name for known in built_in()):
                raise TypeError("has the name of another platform: uninstall it, or rename it")
            adapters[adapter.name] = adapter
        except TypeError as error:
            unusable.append(Unusable(entry.name, package_of(entry), str(error)))
    return list(adapters.values()), unusable


def names() -> set[str]:
    """Names of all platforms, also of unusable ones."""
    adapters, unusable = installed()
    return {adapter.name for adapter in (*built_in(), *adapters)} | {platform.name for platform in unusable}


def origins() -> dict[str, str]:
    """Name and version of the package of each usable platform."""
    found = {adapter.name: f"menuwatch {menuwatch.__version__}" for adapter in built_in()}
    for entry in entry_points(group=ENTRY_POINTS):
        found.setdefault(entry.name, package_of(entry))
    return found


def unknown_platform(name: str, known: Iterable[str]) -> str:
    """The message for a platform that is not one of `known`, with the problem of its package if that is unusable."""
    problem = next((platform for platform in installed()[1] if platform.name == name), None)
    return str(problem) if problem is not None else unknown_value("platform", name, known)


def package_of(entry: EntryPoint) -> str:
    """Name and version of the package of an entry point."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else entry.value


def _load(entry: EntryPoint) -> type[Platform]:
    """The adapter. Raises TypeError with what is wrong with it."""
    try:
        adapter = entry.load()
    except Exception as error:
        raise TypeError(f"cannot be loaded: {type(error).__name__}: {error}") from error
    if not (isinstance(adapter, type) and issubclass(adapter, Platform)):
        raise TypeError(f"is not a subclass of menuwatch.platforms.base.Platform, but {adapter!r}")
    missing = sorted(
        name
        for name in ("name", "normalizer_version", "fields", "items", "items_path", *adapter.__abstractmethods__)
        if not hasattr(adapter, name) or name in adapter.__abstractmethods__
    )
    if missing:
        raise TypeError(f"lacks {', '.join(missing)}: see docs/how-to/add-a-platform.md")
    if adapter.name != entry.name:
        raise TypeError(f"calls itself {adapter.name!r}: the entry point and `name` must be equal")
    if not NAME.fullmatch(adapter.name):
        raise TypeError(f"has an invalid name: {NAME_RULE}")
    return adapter


def with_settings() -> list[type[Platform]]:
    """The adapters that take the settings `<PLATFORM>_BASE_URL` and so on: all that can be requested but Dutchie."""
    return [
        adapter for adapter in (*built_in(), *installed()[0]) if adapter.can_be_requested() and adapter.name != _DUTCHIE
    ]


def settings_of(settings: Settings, adapter: type[Platform] | Platform) -> PlatformSettings:
    """The settings of one platform. Raises Refused naming the variable."""
    if adapter.name == _DUTCHIE:
        return PlatformSettings(base_url=settings.dutchie_base_url, robots=settings.dutchie_robots)
    given = settings.platforms.get(adapter.name, {})
    checked = platform_settings(adapter.name, given, own_sites=adapter.own_sites)
    if checked.base_url and not adapter.can_be_requested():
        variable = f"{prefix(adapter.name)}BASE_URL"
        raise Refused(
            f"invalid {variable}={checked.base_url!r}: {adapter.name} has recorded responses only; unset it, and import them "
            "with `menuwatch replay`"
        )
    return checked


def _configured(adapter: type[Platform], settings: Settings) -> Platform:
    if adapter.name == _DUTCHIE:
        return _dutchie(settings)
    return adapter.configured(settings_of(settings, adapter), retry_base_seconds=settings.fetch_retry_base_seconds)


def _dutchie(settings: Settings) -> Platform:
    from menuwatch.platforms.dutchie.adapter import Dutchie
    from menuwatch.platforms.dutchie.queries import DEFAULT_HASHES

    unknown = sorted(settings.dutchie_hashes.keys() - DEFAULT_HASHES.keys())
    if unknown:
        names = ", ".join(DEFAULT_HASHES)
        raise Refused(f"invalid DUTCHIE_HASHES: unknown operation {unknown[0]!r}; the operations are {names}")
    return Dutchie(
        base_url=settings.dutchie_base_url,
        graphql_path=settings.dutchie_graphql_path,
        hashes=settings.dutchie_hashes,
        retry_base_seconds=settings.fetch_retry_base_seconds,
    )
