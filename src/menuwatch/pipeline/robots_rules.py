"""What is made of the robots.txt of each host that is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from menuwatch.core.settings import Settings
from menuwatch.crawls.base import Site
from menuwatch.fetch.robots import Policy
from menuwatch.platforms.base import Platform


def robots_policy(
    platforms: Mapping[str, Platform], settings: Settings, sites: Mapping[str, Site] | None = None
) -> Callable[[str], Policy]:
    """What is made of the robots.txt of each platform's hosts: whoever has hosts has a setting. Others' are kept to."""
    said = {
        "dutchie": Policy(settings.dutchie_robots == "respect", "DUTCHIE_ROBOTS"),
        "weedmaps": Policy(settings.weedmaps_robots == "respect", "WEEDMAPS_ROBOTS"),
    }
    by_host = {host: said[name] for name, platform in platforms.items() for host in platform.hosts}
    searched = {"cj": Policy(settings.cj_robots == "respect", "CJ_ROBOTS")}
    by_host |= {host: searched.get(name, Policy()) for name, site in (sites or {}).items() for host in site.hosts}
    return lambda host: by_host.get(host, Policy())
