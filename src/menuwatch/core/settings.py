"""Every setting, read once from the environment: its variable, its default, its unit, what it means.

`Settings.from_env` is the only reader; everything else is handed the values it needs. `docs/reference/settings.md` lists
the same fields, and a test holds the two together.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Any

from menuwatch.core import setting_values as values
from menuwatch.core.environment import described, said_by, setting, values_of
from menuwatch.core.errors import Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of one process."""

    home: Path = setting(
        "MENUWATCH_HOME",
        lambda: Path(".menuwatch"),
        values.path,
        "Data folder: embedded database and storage live in it.",
    )
    database_url: str | None = setting(
        "DATABASE_URL", None, str, "PostgreSQL 15 or newer, as a URL. Unset: an embedded server in the data folder."
    )
    storage_path: Path | None = setting(
        "STORAGE_PATH", None, values.path, "Root of archive and images. Unset: `storage` in the data folder."
    )
    archive_level: int = setting(
        "ARCHIVE_LEVEL",
        2,
        values.whole(1, 9),
        "How tightly archived answers are compressed: 1 is fastest, 9 smallest; up to 3 costs little time.",
    )
    host: str = setting("HOST", "127.0.0.1", str, "Address that the server listens on.")
    port: int = setting("PORT", 8640, values.whole(0, 65535), "Port that the server listens on; 0 takes a free one.")
    public_url: str | None = setting(
        "PUBLIC_URL",
        None,
        values.public_url,
        "Address at which people reach the server, with the path below which it lies, if any. Unset: `http://HOST:PORT`. With "
        "https, logins are kept to it.",
        example="https://example.org/menus",
    )
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = setting(
        "TRUSTED_PROXIES",
        (),
        values.networks,
        "Addresses and networks of proxies in front, comma-separated, whose X-Forwarded-For is believed. Unset: nobody's.",
        example="127.0.0.1,10.0.0.0/8",
    )
    session_hours: float = setting(
        "SESSION_HOURS",
        12.0,
        values.number(0.01, 720, "hours"),
        "Hours without a request after which a login ends.",
    )
    session_days: float = setting(
        "SESSION_DAYS",
        14.0,
        values.number(0.01, 365, "days"),
        "Days after which a login ends in any case.",
    )
    password_memory_kib: int = setting(
        "PASSWORD_MEMORY_KIB",
        65_536,
        values.whole(1024, 4_194_304, "KiB"),
        "Memory that hashing one password takes, KiB: the more, the harder a stolen hash is to guess. Two are hashed at a time.",
    )
    geoip_database: Path | None = setting(
        "GEOIP_DATABASE",
        None,
        values.path,
        "Database of where addresses are, MaxMind format or IP2Location BIN, for figures of visitors. Unset: nobody is placed.",
    )
    log_format: str = setting("LOG_FORMAT", "console", str, "`console` for people, `json` for machines.")
    log_level: str = setting("LOG_LEVEL", "info", str, "`debug`, `info`, `warning` or `error`.")

    worker_role: tuple[str, ...] = setting(
        "WORKER_ROLE", (), values.roles, "Roles that a worker may claim, comma-separated. Unset or `any`: all."
    )
    worker_id: str | None = setting("WORKER_ID", None, str, "Name of this worker in the database. Unset: generated.")
    poll_interval_ms: int = setting(
        "POLL_INTERVAL_MS",
        5000,
        values.whole(10, 3_600_000, "ms"),
        "Longest wait for new work when no notification comes, ms.",
    )
    heartbeat_interval_ms: int = setting(
        "HEARTBEAT_INTERVAL_MS",
        30_000,
        values.whole(100, 3_600_000, "ms"),
        "Time between two heartbeats of a worker, ms.",
    )
    max_concurrent_tasks: int = setting(
        "MAX_CONCURRENT_TASKS", 3, values.whole(1, 500), "Tasks that one worker runs at once."
    )
    workers_per_pod: int = setting(
        "WORKERS_PER_POD",
        1,
        values.whole(1, 100),
        "Worker processes of `menuwatch worker`; from 2 on a supervisor starts them and replaces those that crash. Those that "
        "`menuwatch up` begins with, until another number is ordered.",
    )
    workers_min: int | None = setting(
        "WORKERS_MIN",
        None,
        values.whole(0, 10_000),
        "Fewest workers (pods, where there are any) that one may scale to. Unset: 1 worker, 5 pods.",
        example="1",
    )
    workers_max: int | None = setting(
        "WORKERS_MAX",
        None,
        values.whole(1, 10_000),
        "Most workers (pods) that one may scale to. Unset: two workers for each processor, but eight on small machines; 15 pods.",
        example="15",
    )
    scaler: str = setting(
        "SCALER",
        "auto",
        values.scaler,
        "What has more or fewer workers run: `kubernetes` a StatefulSet, `local` a supervisor (`menuwatch up`). `auto`: Kubernetes "
        "where a service account's token is mounted.",
    )
    k8s_namespace: str = setting("K8S_NAMESPACE", "dispensary-scraper", values.label, "Namespace of that StatefulSet.")
    k8s_worker_statefulset: str = setting(
        "K8S_WORKER_STATEFULSET", "scraper-worker", values.label, "StatefulSet whose pods run the workers."
    )
    pod_ordinal: int | None = setting(
        "POD_ORDINAL",
        None,
        values.whole(0, 999_999),
        "Number of this pod, which decides its friendly name. Unset: the one at the end of POD_NAME or of the host's name.",
        example="3",
    )
    pod_name: str | None = setting(
        "POD_NAME", None, str, "Name of this pod, as Kubernetes gives it (`scraper-worker-3`). Unset: the host's name."
    )
    memory_backoff_threshold: float = setting(
        "MEMORY_BACKOFF_THRESHOLD",
        0.85,
        values.number(0, 1),
        "Share of the memory limit above which a worker claims nothing for a while; 1: never.",
    )
    cpu_backoff_threshold: float = setting(
        "CPU_BACKOFF_THRESHOLD",
        0.90,
        values.number(0, 1),
        "Share of the processor limit, over five seconds, above which it claims nothing for a while; 1: never.",
    )
    event_loop_lag_backoff_ms: int = setting(
        "EVENT_LOOP_LAG_BACKOFF_MS",
        500,
        values.whole(1, 3_600_000, "ms"),
        "Average lateness of a worker's event loop, over five seconds, above which it claims nothing for a while, ms.",
    )
    backoff_duration_ms: int = setting(
        "BACKOFF_DURATION_MS",
        10_000,
        values.whole(1, 3_600_000, "ms"),
        "Time for which an overloaded worker claims nothing, ms.",
    )
    stale_after_minutes: float = setting(
        "STALE_AFTER_MINUTES",
        10.0,
        values.number(0.01, 1440, "minutes"),
        "Silence after which a worker's tasks are taken back, minutes.",
    )
    task_retry_base_seconds: float = setting(
        "TASK_RETRY_BASE_SECONDS",
        30.0,
        values.number(0, 86_400, "seconds"),
        "First wait before a failed task is tried again, seconds.",
    )
    shutdown_grace_seconds: float = setting(
        "SHUTDOWN_GRACE_SECONDS",
        30.0,
        values.number(0, 3600, "seconds"),
        "Time that running tasks get to finish at a stop, seconds.",
    )
    metrics_port: int = setting(
        "METRICS_PORT",
        0,
        values.whole(0, 65_000),
        "Port of a worker's own metrics; 0: none. The n-th worker of a pod takes the n-th port from there.",
        example="9464",
    )
    metrics_host: str = setting("METRICS_HOST", "127.0.0.1", str, "Address of a worker's own metrics.")
    task_history_days: int = setting(
        "TASK_HISTORY_DAYS",
        30,
        values.whole(1, 36_500, "days"),
        "Days that finished tasks are kept, whole days at a time.",
    )
    fetch_attempt_days: int = setting(
        "FETCH_ATTEMPT_DAYS",
        14,
        values.whole(1, 36_500, "days"),
        "Days that single requests are kept, whole days at a time; their sums are kept for good.",
    )
    schedule_run_days: int = setting(
        "SCHEDULE_RUN_DAYS",
        90,
        values.whole(1, 36_500, "days"),
        "Days that the runs of schedules and a day's plans are kept.",
    )
    audit_days: int = setting(
        "AUDIT_DAYS",
        730,
        values.whole(0, 36_500, "days"),
        "Days that the audit is kept (who changed what); 0: for good.",
    )
    product_history_days: int = setting(
        "PRODUCT_HISTORY_DAYS",
        0,
        values.whole(0, 36_500, "days"),
        "Days that past prices, stock and potency are kept in the database, whole months at a time; 0: for good, else "
        "`ANALYTICS_WINDOW_DAYS` or more. Packed months are not touched.",
    )
    analytics_window_days: int = setting(
        "ANALYTICS_WINDOW_DAYS",
        7,
        values.whole(1, 92, "days"),
        "Days that coverage and time out of stock look back on; `TASK_HISTORY_DAYS` must not be fewer.",
    )

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
    secret_key: tuple[str, ...] = setting(
        "SECRET_KEY",
        (),
        values.keys,
        "Key that seals passwords of proxies and alert channels; comma-separated, the first seals and all open. Unset: in clear.",
        secret=True,
    )
    image_hosts: tuple[str, ...] = setting(
        "IMAGE_HOSTS",
        ("images.dutchie.com", "s3-us-west-2.amazonaws.com", "images.weedmaps.com"),
        values.words,
        "Hosts that pictures are downloaded from, comma-separated; `*.example.com` stands for all below it.",
    )
    image_downloads: int = setting(
        "IMAGE_DOWNLOADS",
        2,
        values.whole(0, 100),
        "Identities that one worker downloads pictures with at once; 0: none.",
    )
    image_tries: int = setting(
        "IMAGE_TRIES", 4, values.whole(1, 100), "Times that a picture's address is asked before it is given up."
    )
    image_retry_seconds: float = setting(
        "IMAGE_RETRY_SECONDS",
        600.0,
        values.number(0, 86_400, "seconds"),
        "First wait before a picture is tried again, seconds; four times as long each time, up to a day.",
    )
    image_cache_mb: int = setting(
        "IMAGE_CACHE_MB",
        512,
        values.whole(0, 10_000_000, "MB"),
        "Room for pictures that were resized, on disk, MB; 0: none are kept.",
    )
    image_threads: int = setting(
        "IMAGE_THREADS", 2, values.whole(1, 64), "Pictures that the server resizes at the same time."
    )
    image_url_key: tuple[str, ...] = setting(
        "IMAGE_URL_KEY",
        (),
        values.keys,
        "Key that signs addresses of pictures; comma-separated, the first signs and all are taken. Unset: no signature is asked for.",
        secret=True,
    )
    image_presets: tuple[str, ...] = setting(
        "IMAGE_PRESETS",
        ("w=100", "w=200", "w=400", "w=800", "w=1600"),
        values.words,
        "Parameters that need no signature where IMAGE_URL_KEY is set, comma-separated, each as in an address: `w=200&h=200`.",
    )
    mail_url: str | None = setting(
        "MAIL_URL",
        None,
        values.mail_url,
        "Server that mails to shoppers go out by, as Apprise writes it: `mailtos://USER:PASSWORD@HOST?from=ADDRESS`. Unset: no mail, "
        "they are offered feeds only.",
        secret=True,
        example="mailtos://user:password@mail.example.org?from=menus@example.org",
    )
    alert_allow_private: int = setting(
        "ALERT_ALLOW_PRIVATE",
        0,
        values.whole(0, 1),
        "`1` lets alerts be sent to addresses that are not on the public internet.",
        example="1",
    )
    alert_timeout_seconds: float = setting(
        "ALERT_TIMEOUT_SECONDS",
        10.0,
        values.number(0.05, 60, "seconds"),
        "Longest wait for whoever receives an alert, seconds.",
    )
    alert_attempts: int = setting(
        "ALERT_ATTEMPTS", 10, values.whole(1, 100), "How often an alert is sent until its receiver takes it."
    )
    alert_retry_seconds: float = setting(
        "ALERT_RETRY_SECONDS",
        30.0,
        values.number(0, 86_400, "seconds"),
        "First wait before an alert is sent again, seconds; doubled with each try that fails, to 6 h.",
    )
    suspect_share: float = setting(
        "SUSPECT_SHARE", 0.4, values.number(0, 1), "A menu below this share of the store's usual size is quarantined."
    )

    @property
    def storage(self) -> Path:
        """Root of archive and images."""
        return self.storage_path if self.storage_path is not None else self.home / "storage"

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
        """Reads the environment; `overrides` (from the command line) win where they are not None.

        Raises Refused naming the variable, what it holds and what it may hold.
        """
        found = cls(**values_of(cls, os.environ if environ is None else environ, overrides))
        found._check_window()
        return found

    def to_env(self, environ: Mapping[str, str] | None = None) -> dict[str, str]:
        """An environment in which another process reads these very settings; whatever else `environ` (ours) holds is kept."""
        ours = os.environ if environ is None else environ
        others = {name: value for name, value in ours.items() if name not in {row[0] for row in described(Settings)}}
        return others | said_by(self)

    def _check_window(self) -> None:
        """Figures of days that are dropped meanwhile would be wrong, and nobody could tell."""
        days = self.analytics_window_days
        for variable, kept, also in (
            ("TASK_HISTORY_DAYS", self.task_history_days, ""),
            ("PRODUCT_HISTORY_DAYS", self.product_history_days, ", or 0 (for good)"),
        ):
            if kept < days and not (also and kept == 0):
                raise Refused(
                    f"{variable}={str(kept)!r} cannot be used: figures look back on {days} days (ANALYTICS_WINDOW_DAYS); "
                    f"it takes {days} days or more{also}, for example {variable}={days}"
                )


def variables() -> list[tuple[str, str, str]]:
    """(variable, default, meaning) of every setting, in the order of the class."""
    return described(Settings)
