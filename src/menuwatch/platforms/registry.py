"""All platform adapters by name: those of this package, and those of installed packages (entry point `menuwatch.platforms`)."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points

from menuwatch.config.platforms import PlatformSettings, platform_settings
from menuwatch.config.settings import Settings
from menuwatch.core.errors import Refused
from menuwatch.platforms.base import Platform
from menuwatch.platforms.dispense.adapter import Dispense
from menuwatch.platforms.dutchie.adapter import Dutchie
from menuwatch.platforms.dutchie.queries import DEFAULT_HASHES
from menuwatch.platforms.dutchie_plus.adapter import DutchiePlus
from menuwatch.platforms.joint.adapter import Joint
from menuwatch.platforms.weedmaps.adapter import Weedmaps

ENTRY_POINTS = "menuwatch.platforms"
"""Group of entry points; each names a subclass of `Platform`."""

BUILT_IN: tuple[type[Platform], ...] = (Dutchie, Weedmaps, DutchiePlus, Dispense, Joint)
"""The first one is the default of tasks and schedules that name no platform."""


def platforms(settings: Settings) -> dict[str, Platform]:
    """Every platform adapter by name. Raises Refused for unusable settings, and for an installed package that gives no adapter."""
    found: dict[str, Platform] = {}
    for adapter in (*BUILT_IN, *installed()):
        if adapter.name in found:
            raise Refused(f"two platforms are named {adapter.name!r}: uninstall one of the packages")
        found[adapter.name] = _dutchie(settings) if adapter is Dutchie else _configured(adapter, settings)
    return found


def installed() -> list[type[Platform]]:
    """The adapters of installed packages, by name. Raises Refused for one that cannot be loaded or is no adapter."""
    adapters = []
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name):
        package = f"platform {entry.name!r} of the package {entry.dist.name if entry.dist is not None else entry.value}"
        try:
            adapter = entry.load()
        except Exception as error:
            raise Refused(f"{package} cannot be loaded: {type(error).__name__}: {error}") from error
        if not (isinstance(adapter, type) and issubclass(adapter, Platform)):
            raise Refused(f"{package} is no subclass of menuwatch.platforms.base.Platform, but {adapter!r}")
        if adapter.name != entry.name:
            raise Refused(f"{package} calls itself {adapter.name!r}: the entry point and `name` must be equal")
        adapters.append(adapter)
    return adapters


def settings_of(settings: Settings, adapter: type[Platform] | Platform) -> PlatformSettings:
    """The settings of one platform. Raises Refused naming the variable."""
    if adapter.name == Dutchie.name:
        return PlatformSettings(base_url=settings.dutchie_base_url, robots=settings.dutchie_robots)
    given: Mapping[str, str] = settings.platforms.get(adapter.name, {})
    return platform_settings(adapter.name, given, own_sites=adapter.own_sites)


def _configured(adapter: type[Platform], settings: Settings) -> Platform:
    return adapter.configured(settings_of(settings, adapter), retry_base_seconds=settings.fetch_retry_base_seconds)


def _dutchie(settings: Settings) -> Dutchie:
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
