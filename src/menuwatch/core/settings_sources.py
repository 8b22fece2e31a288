"""Whom we ask, and with what manners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from menuwatch.core import setting_values as values
from menuwatch.core.environment import setting
from menuwatch.core.settings_work import WorkSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings(WorkSettings):
    """Platforms, sites, fetching services, hosts and proxies."""

    dutchie_base_url: str = setting(
        "DUTCHIE_BASE_URL", "https://dutchie.com", values.url, "Scheme and host of the Dutchie API."
    )
    dutchie_graphql_path: str = setting("DUTCHIE_GRAPHQL_PATH", "/api-3/graphql", str, "Path of its GraphQL endpoint.")
    dutchie_hashes: Mapping[str, str] = setting(
        "DUTCHIE_HASHES",
        dict,
        values.hashes,
        "Persisted-query hashes by operation, a JSON object; merged over the built-in ones.",
    )
    dutchie_robots: str = setting(
        "DUTCHIE_ROBOTS",
        "respect",
        values.robots,
        "`respect` keeps to its robots.txt; `ignore` does not ask for it, for which you need the right.",
    )
    weedmaps_base_url: str = setting(
        "WEEDMAPS_BASE_URL",
        "",
        values.url,
        "Scheme and host of the Weedmaps API. Unset: recorded answers are read and nobody is asked.",
    )
    weedmaps_robots: str = setting(
        "WEEDMAPS_ROBOTS",
        "respect",
        values.robots,
        "`respect` keeps to its robots.txt; `ignore` does not ask for it, for which you need the right.",
    )
    cj_base_url: str = setting(
        "CJ_BASE_URL",
        "https://cjdropshipping.com",
        values.url,
        "Scheme and host of CJ Dropshipping, for search crawls.",
    )
    cj_robots: str = setting(
        "CJ_ROBOTS",
        "respect",
        values.robots,
        "`respect` keeps to its robots.txt where our own workers fetch; `ignore` does not ask for it, for which you need the right.",
    )
    serpwatch_token: str | None = setting(
        "SERPWATCH_TOKEN",
        None,
        str,
        "Token of SerpWatch, which fetches pages of search crawls and charges for them. Unset: it is not offered.",
        secret=True,
        example="s3cr3t",
    )
    serpwatch_url: str = setting(
        "SERPWATCH_URL", "https://engine.v2.serpwatch.io", values.url, "Scheme and host of SerpWatch."
    )
    crawl_result_hosts: tuple[str, ...] = setting(
        "CRAWL_RESULT_HOSTS",
        ("serpengine.hel1.your-objectstorage.com",),
        values.words,
        "Hosts that pages are fetched from which a webhook leads to, comma-separated; `*.example.com` stands for all below it.",
    )
    crawl_deadline_minutes: float = setting(
        "CRAWL_DEADLINE_MINUTES",
        30.0,
        values.number(0.01, 1440, "minutes"),
        "Time for a page of a search crawl to come; then the attempt has failed, minutes.",
    )
    fetch_timeout_seconds: float = setting(
        "FETCH_TIMEOUT_SECONDS",
        30.0,
        values.number(0.1, 600, "seconds"),
        "Longest wait for one answer of a platform, seconds.",
    )
    fetch_retry_base_seconds: float = setting(
        "FETCH_RETRY_BASE_SECONDS",
        1.0,
        values.number(0, 600, "seconds"),
        "First wait before one request is tried again, seconds.",
    )
    blocked_wait_seconds: float = setting(
        "BLOCKED_WAIT_SECONDS",
        900.0,
        values.number(0, 86_400, "seconds"),
        "Wait before a store is tried again that refused several identities, s.",
    )
    host_rate: float = setting(
        "HOST_RATE",
        2.0,
        values.number(0.000001, 1_000_000, "requests a second"),
        "Most requests in a second to one host, all workers together, where `menuwatch hosts set` says nothing else.",
    )
    host_burst: int = setting(
        "HOST_BURST", 4, values.whole(1, 10_000), "Requests to one host that may follow each other at once."
    )
    host_concurrency: int = setting(
        "HOST_CONCURRENCY",
        6,
        values.whole(1, 10_000),
        "Identities that talk to one host at the same time, all workers together.",
    )
    host_min_gap_seconds: float = setting(
        "HOST_MIN_GAP_SECONDS",
        0.0,
        values.number(0, 86_400, "seconds"),
        "Shortest time between two requests to one host, seconds.",
        example="0.5",
    )
    host_cooldown_seconds: float = setting(
        "HOST_COOLDOWN_SECONDS",
        60.0,
        values.number(0, 86_400, "seconds"),
        "First wait when a host asks to slow down and names no time, seconds; doubles, up to an hour.",
    )
    circuit_seconds: float = setting(
        "CIRCUIT_SECONDS",
        900.0,
        values.number(0, 86_400, "seconds"),
        "First time that nobody asks a host which refuses many identities in a row, seconds; doubles, up to six hours.",
    )
    fetch_max_bytes: int = setting(
        "FETCH_MAX_BYTES",
        64_000_000,
        values.whole(1000, 2_000_000_000, "bytes"),
        "Largest decoded answer that is accepted, bytes.",
    )
    profiles_file: Path | None = setting(
        "PROFILES_FILE", None, values.path, "Browser profiles, a TOML file, in place of the built-in ones."
    )
    proxy_probe_seconds: float = setting(
        "PROXY_PROBE_SECONDS",
        60.0,
        values.number(0.05, 21_600, "seconds"),
        "First wait before a proxy that was deactivated is tried again, s; doubled with each try that fails, to 6 h.",
    )
