"""Workers, how many they are and when they hold back, and how long what they did is kept."""

from __future__ import annotations

from dataclasses import dataclass

from menuwatch.core import setting_values as values
from menuwatch.core.environment import setting
from menuwatch.core.settings_ground import GroundSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSettings(GroundSettings):
    """What runs tasks, and how long its traces are kept."""

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
