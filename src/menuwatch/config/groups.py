"""Groups of settings: server, worker, sources. They are independent; `config/settings.py` combines them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

from menuwatch.config import values
from menuwatch.config.environment import setting


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """Data, address of the server, logins, logs."""

    home: Path = setting(
        lambda: Path(".menuwatch"),
        values.path,
        "Data directory: contains the embedded database and the storage.",
        variable="MENUWATCH_HOME",
    )
    database_url: str | None = setting(
        None, str, "PostgreSQL 15 or newer, as a URL. Unset: an embedded server in the data directory."
    )
    storage_path: Path | None = setting(
        None,
        values.path,
        "Root of archive and images with STORAGE_DRIVER=local. Unset: `storage` in the data directory.",
    )
    storage_driver: str = setting(
        "local",
        values.one_of("local", "s3"),
        "Where payloads, images and packed history are kept: `local` (files below STORAGE_PATH) or `s3` (the bucket "
        "S3_BUCKET). STORAGE_PATH then holds only the cache of resized images.",
    )
    s3_bucket: str | None = setting(
        None, values.bucket, "Bucket of the object store; required for STORAGE_DRIVER=s3.", example="menuwatch"
    )
    s3_endpoint: str | None = setting(
        None,
        values.endpoint,
        "URL of the S3-compatible object store. Unset: Amazon S3. Credentials and region come from the usual AWS "
        "variables (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION` …) or files.",
        example="https://s3.example.org",
    )
    s3_prefix: str = setting(
        "", values.prefix, "Path in the bucket below which everything is stored. Unset: none.", example="menuwatch/prod"
    )
    archive_level: int = setting(
        2, values.whole(1, 9), "Compression level of the archive: 1 is fastest, 9 smallest; up to 3 costs little time."
    )
    host: str = setting("127.0.0.1", str, "Address that the server listens on.")
    port: int = setting(8640, values.whole(0, 65535), "Port that the server listens on; 0 selects a free one.")
    public_url: str | None = setting(
        None,
        values.public_url,
        "Public URL of the server, including its path prefix, if any. Unset: `http://HOST:PORT`. With https, session "
        "cookies are sent over https only.",
        example="https://example.org/menus",
    )
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = setting(
        (),
        values.networks,
        "Addresses and networks of reverse proxies whose X-Forwarded-For is trusted, comma-separated. Unset: no proxy "
        "is trusted.",
        example="127.0.0.1,10.0.0.0/8",
    )
    session_hours: float = setting(
        12.0, values.number(0.01, 720, "hours"), "Hours of inactivity after which a session ends."
    )
    session_days: float = setting(14.0, values.number(0.01, 365, "days"), "Maximum lifetime of a session, days.")
    password_memory_kib: int = setting(
        65_536,
        values.whole(1024, 4_194_304, "KiB"),
        "Memory for hashing one password, KiB: the more, the harder a stolen hash is to guess. Two are hashed at a "
        "time.",
    )
    geoip_database: Path | None = setting(
        None,
        values.path,
        "Geolocation database for visitor statistics, MaxMind format or IP2Location BIN. Unset: geolocation disabled.",
    )
    minimum_age: int = setting(
        0,
        values.whole(0, 99, "years"),
        "Minimum age in years that visitors of the public site must confirm. 0: no age check.",
    )
    site_cache_mb: int = setting(
        32,
        values.whole(0, 100_000, "MB"),
        "Maximum size of the rendered pages of the public site that the server keeps in memory, up to a minute each, MB; "
        "0: none.",
    )
    log_format: str = setting("console", values.one_of("console", "json"), "`console` for people, `json` for machines.")
    log_level: str = setting(
        "info", values.one_of("debug", "info", "warning", "error"), "`debug`, `info`, `warning` or `error`."
    )


@dataclass(frozen=True, kw_only=True)
class WorkerSettings:
    """Task execution and retention."""

    worker_role: tuple[str, ...] = setting(
        (),
        values.roles,
        "Roles that a worker accepts, comma-separated. Unset or `any`: all. `product_resync`: payload_fetch and "
        "product_refresh.",
    )
    worker_id: str | None = setting(
        None,
        values.worker_id,
        "Id of this worker in the database; no other running worker may have it. Workers of a pod append their position "
        "(`-1`, `-2`). Unset: generated at each start.",
        example="resync-az",
    )
    poll_interval_ms: int = setting(
        5000, values.whole(10, 3_600_000, "ms"), "Maximum wait for new tasks without a notification, ms."
    )
    heartbeat_interval_ms: int = setting(
        30_000,
        values.whole(100, 3_600_000, "ms"),
        "Time between two heartbeats of a worker, ms; never more than 40 s or a third of STALE_AFTER_MINUTES.",
    )
    max_concurrent_tasks: int = setting(3, values.whole(1, 500), "Tasks that one worker runs at once.")
    task_log_rate: float = setting(
        10.0,
        values.number(0, 10_000),
        "Maximum number of claimed tasks that a worker logs per second; the next line gives the number omitted. 0: none.",
    )
    workers_per_pod: int = setting(
        1,
        values.whole(1, 100),
        "Worker processes of `menuwatch worker`; with 2 or more, a supervisor starts them and replaces those that "
        "crash. Also the initial number for `menuwatch up`, until it is scaled.",
    )
    workers_min: int | None = setting(
        None,
        values.whole(0, 10_000),
        "Minimum number of workers (with Kubernetes: pods) for scaling. Unset: 1 worker, 5 pods.",
        example="1",
    )
    workers_max: int | None = setting(
        None,
        values.whole(1, 10_000),
        "Maximum number of workers (with Kubernetes: pods) for scaling. Unset: two workers per processor and at "
        "least eight; 15 pods.",
        example="15",
    )
    scaler: str = setting(
        "auto",
        values.scaler,
        "What scales the workers: `kubernetes` a StatefulSet, `local` a supervisor (`menuwatch up`). `auto`: "
        "Kubernetes if a service account token is mounted.",
    )
    k8s_namespace: str = setting("dispensary-scraper", values.label, "Namespace of that StatefulSet.")
    k8s_worker_statefulset: str = setting("scraper-worker", values.label, "StatefulSet whose pods run the workers.")
    pod_ordinal: int | None = setting(
        None,
        values.whole(0, 999_999),
        "Ordinal of this pod, which determines its friendly name. Unset: from the end of POD_NAME or of the host name.",
        example="3",
    )
    pod_name: str | None = setting(
        None, values.name, "Name of this pod, set by Kubernetes (`scraper-worker-3`). Unset: the host name."
    )
    memory_backoff_threshold: float = setting(
        0.85,
        values.number(0, 1),
        "Share of the memory limit above which a worker stops claiming for a while; 1: never.",
    )
    cpu_backoff_threshold: float = setting(
        0.90,
        values.number(0, 1),
        "Share of the CPU limit, over five seconds, above which a worker stops claiming for a while; 1: never.",
    )
    event_loop_lag_backoff_ms: int = setting(
        500,
        values.whole(1, 3_600_000, "ms"),
        "Mean event-loop lag, over five seconds, above which a worker stops claiming for a while, ms.",
    )
    backoff_duration_ms: int = setting(
        10_000, values.whole(1, 3_600_000, "ms"), "Time for which an overloaded worker claims nothing, ms."
    )
    stale_after_minutes: float = setting(
        10.0,
        values.number(0.01, 1440, "minutes"),
        "Time without a heartbeat after which a worker's tasks are recovered, minutes.",
    )
    task_retry_base_seconds: float = setting(
        30.0, values.number(0, 86_400, "seconds"), "First wait before a failed task is retried, seconds."
    )
    shutdown_grace_seconds: float = setting(
        30.0, values.number(0, 3600, "seconds"), "Time that running tasks get to finish at shutdown, seconds."
    )
    metrics_port: int = setting(
        0,
        values.whole(0, 65_000),
        "Port of a worker's own metrics; 0: none. The n-th worker of a pod uses the n-th port from there.",
        example="9464",
    )
    metrics_host: str = setting("127.0.0.1", str, "Address that a worker's own metrics listen on.")
    task_history_days: int = setting(
        30, values.whole(1, 36_500, "days"), "Days that finished tasks are kept, whole days at a time."
    )
    fetch_attempt_days: int = setting(
        14,
        values.whole(1, 36_500, "days"),
        "Days that request records are kept, whole days at a time; their totals are kept forever.",
    )
    schedule_run_days: int = setting(
        90, values.whole(1, 36_500, "days"), "Days that schedule runs and day plans are kept."
    )
    audit_days: int = setting(730, values.whole(0, 36_500, "days"), "Days that audit entries are kept; 0: forever.")
    product_history_days: int = setting(
        0,
        values.whole(0, 36_500, "days"),
        "Days that past prices, stock and potency are kept in the database, whole months at a time; 0: forever, else "
        "at least `ANALYTICS_WINDOW_DAYS`. Packed months are not affected.",
    )
    payload_days: int = setting(
        0,
        values.whole(0, 36_500, "days"),
        "Days to keep all raw payloads; of older ones, only the first and last per day and store are kept. 0: keep all "
        "forever. Otherwise at least `ANALYTICS_WINDOW_DAYS`.",
    )
    crawl_history_days: int = setting(
        0,
        values.whole(0, 36_500, "days"),
        "Days that ended search crawls are kept, with their products and archived pages; 0: forever.",
    )
    analytics_window_days: int = setting(
        7,
        values.whole(1, 92, "days"),
        "Time window of coverage and out-of-stock analytics, days; must not exceed `TASK_HISTORY_DAYS`.",
    )


@dataclass(frozen=True, kw_only=True)
class SourceSettings:
    """Platforms, sites, fetching services, hosts and proxies."""

    dutchie_base_url: str = setting("https://dutchie.com", values.url, "Scheme and host of the Dutchie API.")
    dutchie_graphql_path: str = setting("/api-3/graphql", values.path_of_url, "Path of its GraphQL endpoint.")
    dutchie_hashes: Mapping[str, str] = setting(
        dict, values.hashes, "Persisted-query hashes by operation, a JSON object; merged over the built-in ones."
    )
    dutchie_robots: str = setting(
        "respect",
        values.robots,
        "`respect` obeys robots.txt; `ignore` does not request it, which requires permission of the site.",
    )
    cj_base_url: str = setting(
        "https://cjdropshipping.com", values.url, "Scheme and host of CJ Dropshipping, for search crawls."
    )
    cj_robots: str = setting(
        "respect",
        values.robots,
        "`respect` obeys robots.txt for requests of our own workers; `ignore` does not request it, which requires "
        "permission of the site.",
    )
    serpwatch_token: str | None = setting(
        None,
        values.token,
        "Token of SerpWatch, a paid provider of search crawl pages. Unset: not available.",
        secret=True,
        example="s3cr3t",
    )
    serpwatch_url: str = setting("https://engine.v2.serpwatch.io", values.url, "Scheme and host of SerpWatch.")
    crawl_result_hosts: tuple[str, ...] = setting(
        ("serpengine.hel1.your-objectstorage.com",),
        values.hosts,
        "Hosts that result pages named by a webhook are downloaded from, comma-separated; `*.example.com` includes "
        "all subdomains.",
    )
    crawl_deadline_minutes: float = setting(
        30.0,
        values.number(0.01, 1440, "minutes"),
        "Deadline for a page of a search crawl, after which the attempt has failed, minutes.",
    )
    crawl_gap_min_seconds: float = setting(
        5.0,
        values.number(1, 3600, "seconds"),
        "Shortest time between two pages of a search crawl, seconds; like the next four, a default that each crawl "
        "may override.",
    )
    crawl_gap_max_seconds: float = setting(
        15.0, values.number(1, 3600, "seconds"), "Longest time between two pages of a search crawl, seconds."
    )
    crawl_mixing_threshold: int = setting(
        15,
        values.whole(1, 1000),
        "Number of ready pages at which a search crawl stops waiting for more pages to choose from.",
    )
    crawl_max_retries: int = setting(
        3, values.whole(0, 10), "Retries of a page of a search crawl after its first attempt."
    )
    crawl_retry_base_minutes: float = setting(
        15.0,
        values.number(0, 1440, "minutes"),
        "Wait before the first retry of a page of a search crawl, minutes. It doubles with each retry; up to a third of "
        "this value is added at random.",
    )
    fetch_timeout_seconds: float = setting(
        30.0, values.number(0.1, 600, "seconds"), "Timeout for one response of a platform, seconds."
    )
    fetch_retry_base_seconds: float = setting(
        1.0, values.number(0, 600, "seconds"), "First wait before a request is retried, seconds."
    )
    blocked_wait_seconds: float = setting(
        900.0, values.number(0, 86_400, "seconds"), "Wait before a store that refused several identities is retried, s."
    )
    host_rate: float = setting(
        2.0,
        values.number(0.000001, 1_000_000, "requests a second"),
        "Default rate limit per host, requests per second over all workers; overridden by `menuwatch hosts set`.",
    )
    host_burst: int = setting(4, values.whole(1, 10_000), "Maximum number of requests to one host in a burst.")
    host_concurrency: int = setting(
        6, values.whole(1, 10_000), "Maximum number of concurrent identities per host, over all workers."
    )
    host_min_gap_seconds: float = setting(
        0.0,
        values.number(0, 86_400, "seconds"),
        "Minimum time between two requests to one host, seconds.",
        example="0.5",
    )
    host_cooldown_seconds: float = setting(
        60.0,
        values.number(0, 86_400, "seconds"),
        "First wait after a rate-limit response without a time, seconds; doubles, up to an hour.",
    )
    circuit_seconds: float = setting(
        900.0,
        values.number(0, 86_400, "seconds"),
        "First duration of an open circuit after a host refused many identities in a row, seconds; doubles, up to six "
        "hours.",
    )
    fetch_max_bytes: int = setting(
        64_000_000, values.whole(1000, 2_000_000_000, "bytes"), "Maximum size of a decoded response, bytes."
    )
    profiles_file: Path | None = setting(
        None, values.path, "Browser profiles, a TOML file that replaces the built-in ones."
    )
    proxy_probe_seconds: float = setting(
        60.0,
        values.number(0.05, 21_600, "seconds"),
        "First wait before a deactivated proxy is probed, seconds; doubled after each failure, up to six hours.",
    )
