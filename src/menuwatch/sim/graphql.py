"""The GraphQL endpoint: menus, stores, persisted queries, and the ways in which the real one is odd.

- GET and POST; persisted queries by their SHA-256, of which only known ones are answered, or the full text of a query.
- A GET that a browser could make from anywhere is refused, unless a header says that it is none (cross-site request forgery).
- `perPage` is clamped to 100; pages beyond the last are empty; `Status: null` gives nothing.
- An unknown store is an empty list, never an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from menuwatch.sim.desk import MAX_PER_PAGE, Body, Desk
from menuwatch.sim.dispensary import record
from menuwatch.sim.http import Answer, Request
from menuwatch.sim.misbehave import Asked, Identity, Mischief
from menuwatch.sim.model import Shelf, SimStore
from menuwatch.sim.pages import Menus, is_hidden
from menuwatch.sim.recorded import Recorded
from menuwatch.sim.selection import Selection, SyntaxProblem, parse, project
from menuwatch.sim.stats import Stats

HASHES: Mapping[str, str] = {
    "ee29c060826dc41c527e470e9ae502c9b2c169720faa0a9f5d25e1b9a530a4a0": "FilteredProducts",
    "0d3ff8648848a737bbbeff9d090854ce2b78a7c4330d4982dab5b32ba2009448": "ConsumerDispensaries",
}
"""Persisted queries that are answered unless told otherwise: the newest known."""

_FIELDS = {"filteredProducts": "FilteredProducts", "filteredDispensaries": "ConsumerDispensaries"}
_NOT_FORGED = ("apollo-require-preflight", "x-apollo-operation-name")


class _Refused(Exception):
    """The request itself is wrong."""

    def __init__(self, status: int, message: str, code: str) -> None:
        super().__init__(message)
        self.answer = Answer(status, _errors(message, code))


def _errors(message: str, code: str) -> bytes:
    return msgspec.json.encode({"errors": [{"message": message, "extensions": {"code": code}}]})


class Endpoint:
    """Answers GraphQL requests about one market at its present tick."""

    def __init__(self, menus: Menus, mischief: Mischief, stats: Stats, recorded: Recorded | None = None) -> None:
        self._menus = menus
        self._desk = Desk(mischief, stats)
        self._recorded = recorded
        self.hashes: dict[str, str] = dict(HASHES)
        self._texts: dict[str, tuple[str, Selection]] = {}
        self.tick = 0

    def answer(self, request: Request, identity: Identity) -> Answer:
        """The answer to one request, spoiled or not."""
        try:
            operation, variables, selection = self._understand(request)
        except _Refused as refused:
            self._desk.refused()
            return refused.answer
        menu = operation == "FilteredProducts"
        wanted = variables.get("productsFilter") if menu else None
        store = self._store(wanted.get("dispensaryId")) if isinstance(wanted, dict) else None
        page = variables.get("page")
        asked = self._desk.note(operation, identity, store, page if isinstance(page, int) else 0)

        def body(emptied: bool) -> Body:
            if menu:
                return self._products(variables, store, asked, selection, emptied=emptied)
            return Body(self._dispensaries(variables, selection))

        return self._desk.answer(asked, store, self.tick, body)

    def _store(self, key: Any) -> SimStore | None:
        return self._menus.market.find(str(key), "dutchie")

    def _understand(self, request: Request) -> tuple[str, dict[str, Any], Selection | None]:
        """(operation, variables, selection of a full text)."""
        try:
            if request.method == "GET":
                if not any(request.headers.get(name) for name in _NOT_FORGED) and not request.headers.get(
                    "content-type", ""
                ).startswith("application/json"):
                    raise _Refused(
                        400,
                        "This operation has been blocked as a potential Cross-Site Request Forgery (CSRF). Please specify a "
                        "non-empty value for one of the following headers: x-apollo-operation-name, apollo-require-preflight",
                        "BAD_REQUEST",
                    )
                asked: dict[str, Any] = dict(request.query)
                for name in ("variables", "extensions"):
                    asked[name] = msgspec.json.decode(request.query.get(name) or "{}")
            elif request.method == "POST":
                asked = msgspec.json.decode(request.body, type=dict[str, Any])
            else:
                raise _Refused(405, "GraphQL only supports GET and POST requests.", "BAD_REQUEST")
        except msgspec.MsgspecError as error:
            raise _Refused(400, f"The request is no JSON: {error}", "BAD_REQUEST") from error
        variables = asked.get("variables") or {}
        if not isinstance(variables, dict):
            raise _Refused(400, "`variables` in a request must be an object.", "BAD_REQUEST")
        extensions = asked.get("extensions") or {}
        persisted = extensions.get("persistedQuery") if isinstance(extensions, dict) else None
        key = persisted.get("sha256Hash") if isinstance(persisted, dict) else None
        text = asked.get("query")
        if text:
            if key is not None and sha256(text.encode()).hexdigest() != key:
                raise _Refused(400, "provided sha does not match query", "INTERNAL_SERVER_ERROR")
            operation, selection = self._read(str(text))
            return operation, variables, selection
        if key is None:
            raise _Refused(
                400,
                "GraphQL operations must contain a non-empty `query` or a `persistedQuery` extension.",
                "BAD_REQUEST",
            )
        if key not in self.hashes:
            # Apollo answers 200 here; the client is expected to come back with the text.
            raise _Refused(200, "PersistedQueryNotFound", "PERSISTED_QUERY_NOT_FOUND")
        return self.hashes[key], variables, None

    def _read(self, text: str) -> tuple[str, Selection]:
        known = self._texts.get(text)
        if known is not None:
            return known
        try:
            _, root = parse(text)
        except SyntaxProblem as error:
            raise _Refused(400, str(error), "GRAPHQL_PARSE_FAILED") from error
        for field, below in root.values():
            if field in _FIELDS:
                self._texts[text] = _FIELDS[field], below or {}
                return self._texts[text]
        name = next(iter(root.values()), ("", None))[0]
        raise _Refused(400, f'Cannot query field "{name}" on type "Query".', "GRAPHQL_VALIDATION_FAILED")

    def _products(
        self,
        variables: dict[str, Any],
        store: SimStore | None,
        asked: Asked,
        selection: Selection | None,
        *,
        emptied: bool,
    ) -> Body:
        wanted = variables.get("productsFilter")
        wanted = wanted if isinstance(wanted, dict) else {}
        per_page = variables.get("perPage")
        per_page = min(per_page, MAX_PER_PAGE) if isinstance(per_page, int) and per_page > 0 else MAX_PER_PAGE
        page = max(0, asked.page or 0)
        if self._recorded is not None:
            body = self._recorded.menu_page(str(wanted.get("dispensaryId")), page)
            if body is not None:
                return Body(body)
        if store is None:
            return Body(_menu_body([], 0, 0, selection))
        rows, whole = _filtered(self._menus.menu(store, self.tick), store, wanted)
        shown = self._desk.slice([body for _, body in rows], asked, self.tick, per_page, emptied=emptied)
        body = _menu_body(shown.rows, shown.said_total, shown.said_pages, selection)
        return Body(body, (page, shown.pages) if whole and page < max(shown.pages, 1) else None)

    def _dispensaries(self, variables: dict[str, Any], selection: Selection | None) -> bytes:
        wanted = variables.get("dispensaryFilter")
        wanted = wanted if isinstance(wanted, dict) else {}
        if self._recorded is not None:
            body = self._recorded.dispensaries(wanted)
            if body is not None:
                return body
        market = self._menus.market
        found: Sequence[SimStore]
        if wanted.get("cNameOrID") is not None:
            store = self._store(wanted["cNameOrID"])
            found = [store] if store is not None else []
        else:
            found = [
                s
                for s in market.on("dutchie")
                if _same(wanted.get("state"), s.state) and _same(wanted.get("city"), s.city)
            ]
        per_page = variables.get("perPage", wanted.get("perPage"))
        page = variables.get("page", wanted.get("page"))
        if isinstance(per_page, int) and per_page > 0:
            start = page * per_page if isinstance(page, int) else 0
            found = found[start : start + min(per_page, MAX_PER_PAGE)]
        records: Any = [record(s, market.menu(s, self.tick), market.image_base) for s in found]
        return msgspec.json.encode({"data": {"filteredDispensaries": project(records, selection)}})


def _same(wanted: Any, actual: str) -> bool:
    return not wanted or str(wanted).strip().casefold() == actual.casefold()


def _filtered(
    menu: list[tuple[Shelf, bytes]], store: SimStore, wanted: Mapping[str, Any]
) -> tuple[list[tuple[Shelf, bytes]], bool]:
    """(what the filter lets through, whether it lets everything through)."""
    status = wanted.get("Status")
    if status is None:
        return [], False
    rows = menu
    if status != "All":
        rows = [row for row in rows if row[0].active == (status == "Active")]
    types = wanted.get("types")
    if types:
        rows = [row for row in rows if row[0].good.category in types]
    if wanted.get("removeProductsBelowOptionThresholds", True) or not wanted.get("bypassOnlineThresholds", False):
        rows = [row for row in rows if not is_hidden(row[0], store)]
    return rows, rows is menu or len(rows) == len(menu)


def _menu_body(products: Sequence[bytes], total: int, pages: int, selection: Selection | None) -> bytes:
    if selection is None:
        return (
            b'{"data":{"filteredProducts":{"products":['
            + b",".join(products)
            + b'],"queryInfo":{"totalCount":%d,"totalPages":%d,"__typename":"queryInfoType"},' % (total, pages)
            + b'"__typename":"FilteredProducts"}}}'
        )
    whole = {
        "products": [msgspec.json.decode(body) for body in products],
        "queryInfo": {"totalCount": total, "totalPages": pages, "__typename": "queryInfoType"},
        "__typename": "FilteredProducts",
    }
    return msgspec.json.encode({"data": {"filteredProducts": project(whole, selection)}})
