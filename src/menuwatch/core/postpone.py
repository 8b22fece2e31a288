"""Codes for postponed work, each with its label, explanation and remedy."""

from __future__ import annotations

from enum import StrEnum


class PostponeCode(StrEnum):
    """Why a task is postponed."""

    # Stored as `task_live.postpone_code`; the codes of hosts come from `host_block_reason()` and `lease_identity()`.

    PAUSED = "paused"
    CIRCUIT = "circuit"
    COOLING = "cooling"
    PACE = "pace"
    BUSY = "busy"
    NO_FREE_PROXY = "no_free_proxy"
    UNKNOWN = "unknown"
    THROTTLED = "throttled"
    BLOCKED = "blocked"
    ROBOTS = "robots"
    NO_PROXY = "no_proxy"
    REFRESH_RUNNING = "refresh_running"
    OTHER = "other"

    @property
    def label(self) -> str:
        """A short phrase to put after the host name."""
        return _LABELS[self]

    @property
    def by_host(self) -> bool:
        """Whether the state of one host is the reason, so that resuming the host ends the wait."""
        return self in _BY_HOST

    def remedy(self, host: str) -> str | None:
        """What an operator can do about it; None where nothing is wrong."""
        text = _REMEDIES.get(self)
        return None if text is None else text.format(host=host)


_LABELS = {
    PostponeCode.PAUSED: "paused by an operator",
    PostponeCode.CIRCUIT: "circuit open",
    PostponeCode.COOLING: "cooling down",
    PostponeCode.PACE: "rate limit reached",
    PostponeCode.BUSY: "concurrency limit reached",
    PostponeCode.NO_FREE_PROXY: "no free proxy",
    PostponeCode.UNKNOWN: "not registered yet",
    PostponeCode.THROTTLED: "asked to slow down",
    PostponeCode.BLOCKED: "every identity was refused",
    PostponeCode.ROBOTS: "robots.txt not available",
    PostponeCode.NO_PROXY: "no active proxy",
    PostponeCode.REFRESH_RUNNING: "another refresh is running",
    PostponeCode.OTHER: "postponed by its worker",
}

_BY_HOST = frozenset(
    {
        PostponeCode.PAUSED,
        PostponeCode.CIRCUIT,
        PostponeCode.COOLING,
        PostponeCode.PACE,
        PostponeCode.BUSY,
        PostponeCode.THROTTLED,
    }
)

_COOLING = (
    "wait; requests continue automatically at a lower rate. If it cools down often, lower it (`menuwatch hosts set {host} --rate …`); "
    "`menuwatch hosts reset {host}` resumes requests immediately"
)
_REMEDIES = {
    PostponeCode.PAUSED: "resume it with `menuwatch hosts resume {host}`",
    PostponeCode.CIRCUIT: "open the site in your own browser: if it shows its menus to visitors, lower its rate "
    "(`menuwatch hosts set {host} --rate …`) or add proxies on another network; if it does not, or forbids crawling, pause it "
    "(`menuwatch hosts pause {host}`). `menuwatch hosts reset {host}` tries again immediately",
    PostponeCode.COOLING: _COOLING,
    PostponeCode.THROTTLED: _COOLING,
    PostponeCode.PACE: "wait; the task runs within its rate limit. `menuwatch hosts set {host} --rate …` raises the limit",
    PostponeCode.BUSY: "wait; `menuwatch hosts set {host} --concurrency …` allows more concurrent identities",
}
