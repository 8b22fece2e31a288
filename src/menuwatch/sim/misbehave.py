"""Misbehaviour on demand: which request meets what. Decided by the seed and the number of the request, so that a run can be had again.

Kinds, and what else each may be told:

| kind | the client sees | more |
|------|-----------------|------|
| `forbidden` | 403 until its identity (proxy and User-Agent) changes | `lasts`: requests after which it lapses (400) |
| `rate_limited` | 429 | `retry_after` seconds (1) |
| `server_error` | 500, 502 or 503 in turn | `status`: always this one |
| `challenge` | 403 with a page that wants a browser to prove itself, this once | |
| `html` | the web site's own page, with status 200 | |
| `truncated` | a body that ends too soon | `abrupt`: by a reset connection |
| `errors` | GraphQL errors and `data: null` | |
| `empty_page` | a menu page without products, its totals as they are | |
| `slow` | an answer that comes late | `seconds` (1) |
| `pinned` | the first products of the menu once more on every later page | `count` (3) |
| `clamp` | no more than so many products per page | `per_page` (25) |
| `total_lies` | a total that is wrong | `delta` (7); `page_delta`: of totalPages (0) |

All know `rate` (share of the requests, 1 when only other things are said), `limit` (times in all), `stores` (ids or slugs),
`operations` and `pages` (numbers, from 0). The last three kinds are properties of a store at a tick, not of a request:
`rate` is then the share of stores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

OF_REQUESTS = (
    "forbidden", "rate_limited", "server_error", "slow", "challenge", "html", "errors", "truncated", "empty_page",
)  # fmt: skip
OF_STORES = ("pinned", "clamp", "total_lies")
KINDS = OF_REQUESTS + OF_STORES

_COMMON = {"rate", "limit", "stores", "operations", "pages"}
_MORE = {
    "forbidden": {"lasts"}, "rate_limited": {"retry_after"}, "server_error": {"status"}, "truncated": {"abrupt"},
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
    more: dict[str, Any]

    def names(self, asked: Asked) -> bool:
        if self.limit == 0:
            return False
        if self.operations is not None and asked.operation not in self.operations:
            return False
        if self.stores is not None and not self.stores & {asked.store, asked.slug}:
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
    return _Rule(rate, said.get("limit"), chosen("stores"), chosen("operations"), chosen("pages"), more)


class Mischief:
    """The misbehaviour in force."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._rules: dict[str, _Rule] = {}
        self._refused: dict[Identity, int] = {}

    def set(self, wanted: Mapping[str, Any] | None) -> None:
        """Replaces all of it; None or nothing ends it. Raises ValueError that names what is wrong."""
        rules = {kind: _rule(kind, said) for kind, said in (wanted or {}).items() if said is not None}
        self._rules = rules
        self._refused.clear()

    def strike(self, asked: Asked) -> tuple[str, dict[str, Any]] | None:
        """What this request meets instead of (or, `slow`, before) its answer, None for nothing. At most one thing."""
        rule = self._rules.get("forbidden")
        until = self._refused.get(asked.identity)
        if rule is not None and until is not None and asked.number < until and self._in_scope(rule, asked):
            return "forbidden", rule.more
        for kind in OF_REQUESTS:
            rule = self._rules.get(kind)
            if rule is None or not rule.names(asked) or not self._chance(kind, asked.number) < rule.rate:
                continue
            if kind == "empty_page" and asked.operation != "FilteredProducts":
                continue
            rule.use_up()
            if kind == "forbidden":
                self._refused[asked.identity] = asked.number + int(rule.more.get("lasts", 400))
            return kind, rule.more
        return None

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
