"""Fault injection: which request gets which fault. Decided by the seed and the number of the request, so that runs are reproducible,
and by the clock for kinds with a duration.

Kinds and their parameters:

| kind | effect | parameters |
|------|-----------------|------|
| `refuse_all` | 403 for every client | `seconds`: duration from now (unlimited) |
| `forbidden` | 403 until its identity (proxy and User-Agent) changes | `lasts`: requests after which it ends (400) |
| `tired` | 403 for a proxy above a request rate, refused requests included | `requests` (20) in `seconds` (10) |
| `rate_limited` | 429 | `retry_after` seconds (1), or as a `date`; `above`: only above that many requests per second |
| `server_error` | 500, 502 or 503 in turn | `status`: always this one |
| `challenge` | 403 with a browser challenge page, once | `seconds`: duration from now |
| `html` | the web site's own page, with status 200 | |
| `truncated` | an incomplete body | `abrupt`: by a reset connection |
| `errors` | GraphQL errors and `data: null` | |
| `flood` | a Dutchie page with parameters items than any menu has, all empty | `items` (250,000) |
| `empty_page` | a menu page without products, with true totals | |
| `slow` | a delayed response | `seconds` (1) |
| `pinned` | the first products of the menu repeated on every later page | `count` (3) |
| `clamp` | a maximum of products per page | `per_page` (25) |
| `total_lies` | a wrong total | `delta` (7); `page_delta`: of totalPages (0) |

All take `rate` (share of the requests, 1 if only other parameters are given), `limit` (total count), `stores` (ids or slugs),
`operations`, `pages` (numbers, from 0), `agents` (parts of a User-Agent) and `proxies` (numbers). The last three kinds are
properties of a store at a tick, not of a request: `rate` is then the share of stores.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

OF_REQUESTS = (
    "refuse_all", "forbidden", "tired", "rate_limited", "server_error", "slow", "challenge", "html", "errors", "flood",
    "truncated", "empty_page",
)  # fmt: skip
OF_STORES = ("pinned", "clamp", "total_lies")
KINDS = OF_REQUESTS + OF_STORES

MENUS = ("FilteredProducts", "menu_items", "GetProductList")
"""The operations that ask for a page of a menu; `ConsumerDispensaries`, `listings` and `listing` ask for stores."""

_COMMON = {"rate", "limit", "stores", "operations", "pages", "agents", "proxies"}
_PARAMETERS = {
    "refuse_all": {"seconds"}, "forbidden": {"lasts"}, "tired": {"requests", "seconds"},
    "rate_limited": {"retry_after", "date", "above"}, "challenge": {"seconds"}, "server_error": {"status"}, "truncated": {"abrupt"},
    "flood": {"items"}, "slow": {"seconds"}, "pinned": {"count"}, "clamp": {"per_page"}, "total_lies": {"delta", "page_delta"},
}  # fmt: skip

Identity = tuple[int | None, str]
"""Number of the proxy (None: no proxy of ours) and User-Agent."""


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request to a menu API. `store` is the id of the store whose menu it requests."""

    number: int
    operation: str
    identity: Identity
    store: str | None = None
    slug: str | None = None
    page: int | None = None


@dataclass(slots=True)
class _Rule:
    rate: float
    limit: int | None
    parameters: dict[str, Any]
    stores: frozenset[Any] | None
    operations: frozenset[Any] | None
    pages: frozenset[Any] | None
    agents: frozenset[Any] | None
    proxies: frozenset[Any] | None

    def matches(self, request: ApiRequest, *, ignore_limit: bool = False) -> bool:
        if self.limit == 0 and not ignore_limit:
            return False
        if self.operations is not None and request.operation not in self.operations:
            return False
        if self.stores is not None and not self.stores & {request.store, request.slug}:
            return False
        proxy, agent = request.identity
        if self.agents is not None and not any(part in agent for part in self.agents):
            return False
        if self.proxies is not None and proxy not in self.proxies:
            return False
        return self.pages is None or request.page in self.pages


def _rule(kind: str, options: Any) -> _Rule:
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is not a fault; use one of: {', '.join(KINDS)}")
    if isinstance(options, (int, float)) and not isinstance(options, bool):
        options = {"rate": options}
    if not isinstance(options, Mapping):
        raise ValueError(f"{kind}: expected a rate or an object, got {options!r}")
    unknown = set(options) - _COMMON - _PARAMETERS.get(kind, set())
    if unknown:
        raise ValueError(f"{kind} has no parameter {', '.join(sorted(unknown))}")
    rate = float(options.get("rate", 1.0))
    if not 0 <= rate <= 1:
        raise ValueError(f"{kind}: a rate is between 0 and 1, got {rate:g}")
    parameters = {key: value for key, value in options.items() if key not in _COMMON}
    for name in ("seconds", "requests", "above"):
        if name in parameters and not (isinstance(parameters[name], (int, float)) and parameters[name] >= 0):
            raise ValueError(f"{kind}: {name} is a number from 0 on, got {parameters[name]!r}")
    sets = {
        name: frozenset(options[name]) if options.get(name) is not None else None
        for name in ("stores", "operations", "pages", "agents", "proxies")
    }
    return _Rule(rate=rate, limit=options.get("limit"), parameters=parameters, **sets)


class Faults:
    """The active faults."""

    def __init__(self, seed: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._seed = seed
        self._clock = clock
        self._since = clock()
        self._lately: deque[float] = deque()
        self._by_proxy: dict[int, deque[float]] = {}
        self._rules: dict[str, _Rule] = {}
        self._refused: dict[Identity, int] = {}

    def set(self, faults: Mapping[str, Any]) -> None:
        """Replaces all faults. Raises ValueError that names the invalid option."""
        self._rules = {kind: _rule(kind, options) for kind, options in faults.items() if options is not None}
        self._refused.clear()
        self._since = self._clock()
        self._lately.clear()
        self._by_proxy.clear()

    def fault_for(self, request: ApiRequest) -> tuple[str, dict[str, Any]] | None:
        """(kind, parameters) of the fault of this request, None for none."""
        now = self._clock()
        busy = self._count(request, now)
        rule = self._rules.get("forbidden")
        until = self._refused.get(request.identity)
        if (
            rule is not None
            and until is not None
            and request.number < until
            and rule.matches(request, ignore_limit=True)
        ):
            return "forbidden", rule.parameters  # also once the rule's limit is used up
        for kind in OF_REQUESTS:
            rule = self._rules.get(kind)
            if rule is None or not rule.matches(request) or not self._chance(kind, request.number) < rule.rate:
                continue
            if kind == "empty_page" and request.operation not in MENUS:
                continue
            if not self._in_time(kind, rule.parameters, now, busy):
                continue
            if rule.limit is not None:
                rule.limit -= 1
            if kind == "forbidden":
                self._refused[request.identity] = request.number + int(rule.parameters.get("lasts", 400))
            return kind, rule.parameters
        return None

    def _count(self, request: ApiRequest, now: float) -> tuple[int, int]:
        """(Requests within the last second, requests of its proxy within the window of `tired`), this one included."""
        if "rate_limited" in self._rules:
            _slide(self._lately, now, 1.0)
        tired, proxy = self._rules.get("tired"), request.identity[0]
        if tired is None or proxy is None:
            return len(self._lately), 0
        of_proxy = self._by_proxy.setdefault(proxy, deque())
        _slide(of_proxy, now, float(tired.parameters.get("seconds", 10)))
        return len(self._lately), len(of_proxy)

    def _in_time(self, kind: str, parameters: Mapping[str, Any], now: float, busy: tuple[int, int]) -> bool:
        """Whether a rule's time and frequency conditions hold."""
        match kind:
            case "refuse_all" | "challenge" if "seconds" in parameters:
                return bool(now < self._since + parameters["seconds"])
            case "rate_limited" if "above" in parameters:
                return bool(busy[0] > parameters["above"])
            case "tired":
                return bool(busy[1] > parameters.get("requests", 20))
        return True

    def of_store(self, kind: str, request: ApiRequest, tick: int) -> dict[str, Any] | None:
        """The parameters of a fault of a store's whole menu, None if it is not active."""
        rule = self._rules.get(kind)
        if rule is None or not rule.matches(request) or not self._chance(kind, f"{request.store}:{tick}") < rule.rate:
            return None
        return rule.parameters

    def _chance(self, kind: str, key: object) -> float:
        digest = blake2b(f"{self._seed}:{kind}:{key}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") / 2**64


def _slide(times: deque[float], now: float, seconds: float) -> None:
    """Adds now, and drops what is longer ago."""
    times.append(now)
    while times[0] <= now - seconds:
        times.popleft()
