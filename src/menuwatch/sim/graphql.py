"""The GraphQL endpoint: menus, stores, persisted queries, and the quirks of the real one.

- GET and POST; persisted queries by their SHA-256, of which only known ones are answered, or the full text of a query.
- A GET that a browser could send cross-site is refused, unless a header proves otherwise (CSRF protection).
- `perPage` is clamped to 100; pages beyond the last are empty; `Status: null` gives nothing.
- An unknown store is an empty list, never an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from menuwatch.sim.dutchie import render_dispensary, render_product
from menuwatch.sim.endpoint import MAX_PER_PAGE, Body, Endpoint
from menuwatch.sim.fault_injection import ApiRequest, Faults, Identity
from menuwatch.sim.http import Request, Response
from menuwatch.sim.market import Market
from menuwatch.sim.model import ProductState, SimStore, below_threshold
from menuwatch.sim.recorded import Recorded
from menuwatch.sim.stats import Stats

HASHES: Mapping[str, str] = {
    "ee29c060826dc41c527e470e9ae502c9b2c169720faa0a9f5d25e1b9a530a4a0": "FilteredProducts",
    "0d3ff8648848a737bbbeff9d090854ce2b78a7c4330d4982dab5b32ba2009448": "ConsumerDispensaries",
}
"""Persisted queries known by default: the newest."""

_FIELDS = {"filteredProducts": "FilteredProducts", "filteredDispensaries": "ConsumerDispensaries"}
_CSRF_HEADERS = ("apollo-require-preflight", "x-apollo-operation-name")


Selection = dict[str, "tuple[str, Selection | None]"]
"""Name in the answer → (field, what is selected of it; None for all)."""

_TOKEN = re.compile(r'"""[\s\S]*?"""|"(?:\\.|[^"\\])*"|\.\.\.|[_A-Za-z][_0-9A-Za-z]*|[-+.0-9eE]+|#[^\n]*|[^\s,]')


class _Refused(Exception):
    """The request itself is wrong."""

    def __init__(self, status: int, message: str, code: str) -> None:
        super().__init__(message)
        self.response = Response(status, _errors(message, code))


def _errors(message: str, code: str) -> bytes:
    return msgspec.json.encode({"errors": [{"message": message, "extensions": {"code": code}}]})


class GraphQLEndpoint(Endpoint):
    """The GraphQL API of one market."""

    def __init__(self, market: Market, faults: Faults, stats: Stats, recorded: Recorded | None = None) -> None:
        super().__init__(market, render_product, faults, stats)
        self._recorded = recorded
        self.hashes: dict[str, str] = dict(HASHES)
        self._texts: dict[str, tuple[str, Selection]] = {}

    def respond(self, request: Request, identity: Identity) -> Response:
        """The response to one request, faulty or not."""
        try:
            operation, variables, selection = self._parse_request(request)
        except _Refused as refused:
            self._stats.refused()
            return refused.response
        menu = operation == "FilteredProducts"
        store = self._store(_object(variables, "productsFilter").get("dispensaryId")) if menu else None
        page = variables.get("page")
        api_request = self._log(operation, identity, store, page if isinstance(page, int) else 0)

        def body(emptied: bool) -> Body:
            if menu:
                return self._products(variables, store, api_request, selection, emptied=emptied)
            return Body(self._dispensaries(variables, selection))

        return self._respond(api_request, store, body)

    def _store(self, key: Any) -> SimStore | None:
        return self._market.find(str(key), "dutchie")

    def _parse_request(self, request: Request) -> tuple[str, dict[str, Any], Selection | None]:
        """(operation, variables, selection of a full text)."""
        try:
            if request.method == "GET":
                if not any(request.headers.get(name) for name in _CSRF_HEADERS) and not request.headers.get(
                    "content-type", ""
                ).startswith("application/json"):
                    raise _Refused(
                        400,
                        "This operation has been blocked as a potential Cross-Site Request Forgery (CSRF). Please specify a "
                        "non-empty value for one of the following headers: x-apollo-operation-name, apollo-require-preflight",
                        "BAD_REQUEST",
                    )
                parameters: dict[str, Any] = dict(request.query)
                for name in ("variables", "extensions"):
                    parameters[name] = msgspec.json.decode(request.query.get(name) or "{}")
            elif request.method == "POST":
                parameters = msgspec.json.decode(request.body, type=dict[str, Any])
            else:
                raise _Refused(405, "GraphQL only supports GET and POST requests.", "BAD_REQUEST")
        except msgspec.MsgspecError as error:
            raise _Refused(400, f"The request is no JSON: {error}", "BAD_REQUEST") from error
        variables = parameters.get("variables") or {}
        if not isinstance(variables, dict):
            raise _Refused(400, "`variables` in a request must be an object.", "BAD_REQUEST")
        extensions = parameters.get("extensions") or {}
        persisted = extensions.get("persistedQuery") if isinstance(extensions, dict) else None
        key = persisted.get("sha256Hash") if isinstance(persisted, dict) else None
        text = parameters.get("query")
        if text:
            if key is not None and sha256(text.encode()).hexdigest() != key:
                raise _Refused(400, "provided sha does not match query", "INTERNAL_SERVER_ERROR")
            operation, selection = self._parse_query(str(text))
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

    def _parse_query(self, text: str) -> tuple[str, Selection]:
        known = self._texts.get(text)
        if known is not None:
            return known
        try:
            _, root = parse_query(text)
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
        api_request: ApiRequest,
        selection: Selection | None,
        *,
        emptied: bool,
    ) -> Body:
        filters = _object(variables, "productsFilter")
        per_page = variables.get("perPage")
        per_page = min(per_page, MAX_PER_PAGE) if isinstance(per_page, int) and per_page > 0 else MAX_PER_PAGE
        page = max(0, api_request.page or 0)
        if self._recorded is not None:
            body = self._recorded.menu_page(str(filters.get("dispensaryId")), page)
            if body is not None:
                return Body(body)
        if store is None:
            return Body(_menu_body([], 0, 0, selection))
        rows, whole = _filtered(self._menus.menu(store, self.tick), store, filters)
        menu_page = self._menu_page([body for _, body in rows], api_request, per_page, emptied=emptied)
        body = _menu_body(menu_page.rows, menu_page.stated_total, menu_page.stated_pages, selection)
        return Body(body, (page, menu_page.pages) if whole and page < max(menu_page.pages, 1) else None)

    def _dispensaries(self, variables: dict[str, Any], selection: Selection | None) -> bytes:
        filters = _object(variables, "dispensaryFilter")
        if self._recorded is not None:
            body = self._recorded.dispensaries(filters)
            if body is not None:
                return body
        stores: Sequence[SimStore]
        if filters.get("cNameOrID") is not None:
            store = self._store(filters["cNameOrID"])
            stores = [store] if store is not None else []
        else:
            stores = [
                s
                for s in self._market.on("dutchie")
                if _same(filters.get("state"), s.state) and _same(filters.get("city"), s.city)
            ]
        per_page = variables.get("perPage", filters.get("perPage"))
        page = variables.get("page", filters.get("page"))
        if isinstance(per_page, int) and per_page > 0:
            start = page * per_page if isinstance(page, int) else 0
            stores = stores[start : start + min(per_page, MAX_PER_PAGE)]
        image_base = self._market.image_base
        records: Any = [render_dispensary(s, self._market.menu(s, self.tick), image_base) for s in stores]
        return msgspec.json.encode({"data": {"filteredDispensaries": project(records, selection)}})


def _object(variables: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = variables.get(name)
    return value if isinstance(value, dict) else {}


def _same(filtered: Any, actual: str) -> bool:
    return not filtered or str(filtered).strip().casefold() == actual.casefold()


def _is_hidden(state: ProductState, store: SimStore) -> bool:
    """Whether a site that hides what is below the threshold would leave the product out: all of its options are."""
    below = below_threshold(state, store)
    return bool(below) and len(below) == len(state.product.options)


def _filtered(
    menu: list[tuple[ProductState, bytes]], store: SimStore, filters: Mapping[str, Any]
) -> tuple[list[tuple[ProductState, bytes]], bool]:
    """(products that match, whether all do)."""
    status = filters.get("Status")
    if status is None:
        return [], False
    rows = menu
    if status != "All":
        rows = [row for row in rows if row[0].active == (status == "Active")]
    types = filters.get("types")
    if types:
        rows = [row for row in rows if row[0].product.category in types]
    if filters.get("removeProductsBelowOptionThresholds", True) or not filters.get("bypassOnlineThresholds", False):
        rows = [row for row in rows if not _is_hidden(row[0], store)]
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


class SyntaxProblem(ValueError):
    """The text is not valid GraphQL, or uses what is not supported."""


class _Reader:
    """Reads enough of the language for the queries of front ends: operations with variables and arguments, aliases, fragments.
    Arguments are skipped: the simulator takes them from the variables by their known names."""

    def __init__(self, text: str) -> None:
        self._tokens = [t for t in _TOKEN.findall(text) if not t.startswith("#")]
        self._at = 0
        self.fragments: dict[str, list[Any]] = {}

    def peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def take(self, expected: str | None = None) -> str:
        token = self.peek()
        if not token or (expected is not None and token != expected):
            raise SyntaxProblem(f"Syntax Error: Expected {expected or 'a name'}, found {token or '<EOF>'}.")
        self._at += 1
        return token

    def skip_group(self) -> None:
        """A parenthesis with all that is in it."""
        depth = 0
        while True:
            mark = self.take()
            depth += (mark in "([{") - (mark in ")]}")
            if not depth:
                return

    def skip_to_braces(self) -> None:
        while self.peek() != "{":
            self.skip_group() if self.peek() == "(" else self.take()

    def fields(self) -> list[Any]:
        """[(alias, field, [...] or None) or ("...", fragment)]"""
        self.take("{")
        fields: list[Any] = []
        while self.peek() != "}":
            name = self.take()
            if name == "...":
                if self.peek() in ("on", "@", "{"):
                    self.skip_to_braces()
                    fields.extend(self.fields())
                else:
                    fields.append(("...", self.take()))
                continue
            field = name
            if self.peek() == ":":
                self.take(":")
                field = self.take()
            if self.peek() == "(":
                self.skip_group()
            while self.peek() == "@":
                self.take("@")
                self.take()
                if self.peek() == "(":
                    self.skip_group()
            fields.append((name, field, self.fields() if self.peek() == "{" else None))
        self.take("}")
        return fields


def parse_query(text: str) -> tuple[str | None, Selection]:
    """(name of the operation, what it selects). Raises SyntaxProblem."""
    reader = _Reader(text)
    operation: str | None = None
    chosen: list[Any] | None = None
    while reader.peek():
        if reader.peek() == "fragment":
            reader.take()
            name = reader.take()
            reader.skip_to_braces()
            reader.fragments[name] = reader.fields()
            continue
        if reader.peek() != "{":
            if reader.take() != "query":
                raise SyntaxProblem("Syntax Error: only queries are answered.")
            if reader.peek() not in ("(", "{", "@"):
                operation = reader.take()
            reader.skip_to_braces()
        chosen = reader.fields()
    if chosen is None:
        raise SyntaxProblem("Syntax Error: Unexpected <EOF>.")
    return operation, _spread(chosen, reader.fragments)


def _spread(fields: list[Any], fragments: dict[str, list[Any]], depth: int = 0) -> Selection:
    if depth > 20:
        raise SyntaxProblem("fragments that contain themselves")
    selection: Selection = {}
    for entry in fields:
        if entry[0] == "...":
            if entry[1] not in fragments:
                raise SyntaxProblem(f'Unknown fragment "{entry[1]}".')
            selection |= _spread(fragments[entry[1]], fragments, depth + 1)
        else:
            name, field, below = entry
            selection[name] = (field, None if below is None else _spread(below, fragments, depth))
    return selection


def project(value: Any, selection: Selection | None) -> Any:
    """The value with only the fields selected; one that it lacks is null."""
    if selection is None or value is None:
        return value
    if isinstance(value, list):
        return [project(entry, selection) for entry in value]
    if not isinstance(value, dict):
        return value
    return {name: project(value.get(field), below) for name, (field, below) in selection.items()}
