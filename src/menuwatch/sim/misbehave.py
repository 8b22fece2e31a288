"""Misbehaviour on demand: which request meets what. Decided by the seed and the number of the request, so that a run can be had again,
and for the kinds that know a time by the clock.

Kinds, and what else each may be told:

| kind | the client sees | more |
|------|-----------------|------|
| `refuse_all` | 403, whoever asks | `seconds`: for so long from now (for ever) |
| `forbidden` | 403 until its identity (proxy and User-Agent) changes | `lasts`: requests after which it lapses (400) |
| `tired` | 403 for a proxy that made more than so many requests lately, refused ones included | `requests` (20) in `seconds` (10) |
| `rate_limited` | 429 | `retry_after` seconds (1), as a `date`; `above`: only when more requests than that came within a second |
| `server_error` | 500, 502 or 503 in turn | `status`: always this one |
| `challenge` | 403 with a page that wants a browser to prove itself, this once | `seconds`: only for so long from now |
| `html` | the web site's own page, with status 200 | |
| `truncated` | a body that ends too soon | `abrupt`: by a reset connection |
| `errors` | GraphQL errors and `data: null` | |
| `empty_page` | a menu page without products, its totals as they are | |
| `slow` | an answer that comes late | `seconds` (1) |
| `pinned` | the first products of the menu once more on every later page | `count` (3) |
| `clamp` | no more than so many products per page | `per_page` (25) |
| `total_lies` | a total that is wrong | `delta` (7); `page_delta`: of totalPages (0) |

All know `rate` (share of the requests, 1 when only other things are said), `limit` (times in all), `stores` (ids or slugs),
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
    "refuse_all", "forbidden", "tired", "rate_limited", "server_error", "slow", "challenge", "html", "errors", "truncated",
    "empty_page",
)  # fmt: skip
OF_STORES = ("pinned", "clamp", "total_lies")
KINDS = OF_REQUESTS + OF_STORES

MENUS = ("FilteredProducts", "menu_items")
"""The operations that ask for a page of a menu; `ConsumerDispensaries`, `listings` and `listing` ask for stores."""

_COMMON = {"rate", "limit", "stores", "operations", "pages", "agents", "proxies"}
_MORE = {
    "refuse_all": {"seconds"}, "forbidden": {"lasts"}, "tired": {"requests", "seconds"},
    "rate_limited": {"retry_after", "date", "above"}, "challenge": {"seconds"}, "server_error": {"status"}, "truncated": {"abrupt"},
    "slow": {"seconds"}, "pinned": {"count"}, "clamp": {"per_page"}, "total_lies": {"delta", "page_delta"},
}  # fmt: skip

Identity = tuple[int | None, str]
"""Number of the proxy (None: no proxy of ours) and User-Agent."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is known of a request when its fate is decided. `store` is the id of the store whose menu it asks for."""

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
    stores: frozenset[str] | None
    operations: frozenset[str] | None
    pages: frozenset[int] | None
    agents: frozenset[str] | None
    proxies: frozenset[int] | None
    more: dict[str, Any]

    def names(self, asked: Asked) -> bool:
        if self.limit == 0:
            return False
        if self.operations is not None and asked.operation not in self.operations:
            return False
        if self.stores is not None and not self.stores & {asked.store, asked.slug}:
            return False
        proxy, agent = asked.identity
        if self.agents is not None and not any(part in agent for part in self.agents):
            return False
        if self.proxies is not None and proxy not in self.proxies:
            return False
        return self.pages is None or asked.page in self.pages

    def use_up(self) -> None:
        if self.limit is not None:
            self.limit -= 1


def _rule(kind: str, said: Any) -> _Rule:
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is no misbehaviour: it is one of {', '.join(KINDS)}")
    if isinstance(said, (int, float)) and not isinstance(said, bool):
        said = {"rate": said}
    if not isinstance(said, Mapping):
        raise ValueError(f"{kind}: expected a rate or an object, got {said!r}")
    unknown = set(said) - _COMMON - _MORE.get(kind, set())
    if unknown:
        raise ValueError(f"{kind} knows no {', '.join(sorted(unknown))}")
    rate = float(said.get("rate", 1.0))
    if not 0 <= rate <= 1:
        raise ValueError(f"{kind}: a rate is between 0 and 1, got {rate:g}")

    def chosen(name: str) -> Any:
        return frozenset(said[name]) if said.get(name) is not None else None

    more = {key: value for key, value in said.items() if key not in _COMMON}
    for name in ("seconds", "requests", "above"):
        if name in more and not (isinstance(more[name], (int, float)) and more[name] >= 0):
            raise ValueError(f"{kind}: {name} is a number from 0 on, got {more[name]!r}")
    return _Rule(
        rate, said.get("limit"), chosen("stores"), chosen("operations"), chosen("pages"), chosen("agents"), chosen("proxies"), more
    )  # fmt: skip


class Mischief:
    """The misbehaviour in force."""

    def __init__(self, seed: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._seed = seed
        self._clock = clock
        self._since = clock()
        self._lately: deque[float] = deque()
        self._by_proxy: dict[int, deque[float]] = {}
        self._rules: dict[str, _Rule] = {}
        self._refused: dict[Identity, int] = {}

    def set(self, wanted: Mapping[str, Any] | None) -> None:
        """Replaces all of it; None or nothing ends it. Raises ValueError that names what is wrong."""
        rules = {kind: _rule(kind, said) for kind, said in (wanted or {}).items() if said is not None}
        self._rules = rules
        self._refused.clear()
        self._since = self._clock()
        self._lately.clear()
        self._by_proxy.clear()

    def strike(self, asked: Asked) -> tuple[str, dict[str, Any]] | None:
        """What this request meets instead of (or, `slow`, before) its answer, None for nothing. At most one thing."""
        now = self._clock()
        busy = self._count(asked, now)
        rule = self._rules.get("forbidden")
        until = self._refused.get(asked.identity)
        if rule is not None and until is not None and asked.number < until and self._in_scope(rule, asked):
            return "forbidden", rule.more
        for kind in OF_REQUESTS:
            rule = self._rules.get(kind)
            if rule is None or not rule.names(asked) or not self._chance(kind, asked.number) < rule.rate:
                continue
            if kind == "empty_page" and asked.operation not in MENUS:
                continue
            if not self._in_time(kind, rule.more, now, busy):
                continue
            rule.use_up()
            if kind == "forbidden":
                self._refused[asked.identity] = asked.number + int(rule.more.get("lasts", 400))
            return kind, rule.more
        return None

    def _count(self, asked: Asked, now: float) -> tuple[int, int]:
        """Notes the request where a rule counts them. (Requests within the last second, and of its proxy within the time that
        tires one), this one included."""
        if "rate_limited" in self._rules:
            _slide(self._lately, now, 1.0)
        tired, proxy = self._rules.get("tired"), asked.identity[0]
        if tired is None or proxy is None:
            return len(self._lately), 0
        of_proxy = self._by_proxy.setdefault(proxy, deque())
        _slide(of_proxy, now, float(tired.more.get("seconds", 10)))
        return len(self._lately), len(of_proxy)

    def _in_time(self, kind: str, more: Mapping[str, Any], now: float, busy: tuple[int, int]) -> bool:
        """Whether what a rule says of time and frequency holds."""
        match kind:
            case "refuse_all" | "challenge" if "seconds" in more:
                return bool(now < self._since + more["seconds"])
            case "rate_limited" if "above" in more:
                return bool(busy[0] > more["above"])
            case "tired":
                return bool(busy[1] > more.get("requests", 20))
        return True

    def of_store(self, kind: str, asked: Asked, tick: int) -> dict[str, Any] | None:
        """What a property of a store's whole menu is told, None where it does not hold."""
        rule = self._rules.get(kind)
        if rule is None or not rule.names(asked) or not self._chance(kind, f"{asked.store}:{tick}") < rule.rate:
            return None
        return rule.more

    def _in_scope(self, rule: _Rule, asked: Asked) -> bool:
        """A refused identity stays so for everything that the rule is about, its limit used up or not."""
        limit, rule.limit = rule.limit, None
        try:
            return rule.names(asked)
        finally:
            rule.limit = limit

    def _chance(self, kind: str, key: object) -> float:
        digest = blake2b(f"{self._seed}:{kind}:{key}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") / 2**64


def _slide(times: deque[float], now: float, seconds: float) -> None:
    """Adds now, and drops what is longer ago."""
    times.append(now)
    while times[0] <= now - seconds:
        times.popleft()
