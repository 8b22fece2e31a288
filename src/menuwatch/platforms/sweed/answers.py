"""Reads the answers of Sweed: product lists, the titled rows of a front page, shop pages, single products, store records. Pure.

| answer | read as |
|--------|---------|
| GetProductList `{list, total, pageSize, promos, filters, …}` | a page of a menu |
| the same with one category on the page where the shop has several | a part of the menu: one category was asked for |
| GetProductCarouselList `[{name, total, products}]` | a part of the menu: some products of each row of the front page |
| a shop's page (HTML): the query cache `window.__sw_qc` | the product lists in it, a part of the menu; it names its store |
| GetProductByVariantId, bare lists of products | a part of the menu |
| any other answer of Sweed | refused with its name |

Each may be in a recorder's wrapper, `{url, status, data}`. A list does not name its store: only the
request did, in its header `storeid`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from menuwatch.core import strict_json as strict
from menuwatch.core.errors import BadPayload, NotAMenu
from menuwatch.platforms.envelope import check_count, decode, missing, parse_count, with_status
from menuwatch.platforms.model import Page, PageInfo, page_count
from menuwatch.platforms.sweed.rows import RowIds, promo_terms, row_key, with_field, with_terms

Fields = dict[str, msgspec.Raw]
_content = msgspec.json.Decoder(list[msgspec.Raw] | Fields)


class _Plain(msgspec.Struct, gc=False):
    """A page of a product list without anything odd in it: nearly all are."""

    rows: list[RowIds] = msgspec.field(name="list")
    total: msgspec.Raw = msgspec.Raw()
    page_size: msgspec.Raw = msgspec.field(name="pageSize", default=msgspec.Raw())


_plain = strict.Decoder(_Plain)

_OTHERS: tuple[tuple[frozenset[str], str], ...] = tuple(
    (frozenset(names.split()), what)
    for names, what in (
        ("banners", "a list of banners (GetBanners)"),
        ("shopInShopItems", "a list of shops in the shop (GetShopInShopsList)"),
        ("storeFulfillmentOptions", "the ways to order (GetAvailableFulfillmentTypesV2)"),
        ("licenseCode storesCount", "the configuration of a shop (GetStoreConfig)"),
        ("contacts location saleTypes", "the record of a store (GetStoreInfo)"),
        ("thc cbd terpenes", "laboratory results of one variant (GetExtendedLabdata)"),
        ("id name imageUrl filter", "a list of categories (GetProductCategoryList)"),
        ("stores total_fetched", "a list of stores"),
        ("store_id sale_types", "a list of stores"),
        ("store_id response_sample", "a list of samples of category lists"),
        ("method url post_data", "a list of requests"),
    )
)
"""Fields by which another answer of Sweed is known, and what it is. The order matters."""


def inspect(body: bytes, status: int = 200) -> PageInfo:
    """Like `read`, without the items: one pass over a page without anomalies. Raises the same errors."""
    try:
        answer = _plain.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return read(body, status).inspect(row_key)
    check_count(len(answer.rows), body)
    total, pages = _totals(answer.total, answer.page_size, len(answer.rows))
    return PageInfo(tuple([row.key() for row in answer.rows]), total, pages, strict=True)


def read(body: bytes, status: int = 200) -> Page:
    """Parses an answer, which may hold no product. Raises BadPayload of kind html, truncated, errors, schema, limits or no_data,
    NotAMenu for other answers of Sweed."""
    if (start := _QUERIES.search(body)) is not None:
        return _shop_page(body, start.end())
    content = _unwrapped(decode(body, _content, status), status, body)
    if isinstance(content, dict):
        page = _product_list(content)
        if page is None and _is_row(content):
            page = Page([_again(content)], None, None, partial=True)
    else:
        page = _titled_rows(content, body)
    if page is None:
        raise _no_menu(content, status, body)
    check_count(len(page.items), body)
    return page


def _unwrapped(content: list[msgspec.Raw] | Fields, status: int, body: bytes) -> list[msgspec.Raw] | Fields:
    """The answer in a recorder's wrapper, or the answer itself."""
    if isinstance(content, list) or "data" not in content or "list" in content:
        return content
    if "errors" in content:
        raise BadPayload("errors", with_status("the response has errors and no menu", status), body)
    found = _fields_or_list(content["data"])
    if found is None:
        raise missing("menu", "data", status, body)
    return found


def _fields_or_list(raw: msgspec.Raw) -> list[msgspec.Raw] | Fields | None:
    """An object or a list; None for anything else."""
    try:
        found: list[msgspec.Raw] | Fields = _content.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return found


def _listed(raw: msgspec.Raw | None) -> list[msgspec.Raw] | None:
    """A list without its nulls, which some product lists have."""
    found = _fields_or_list(raw) if raw is not None else None
    return [entry for entry in found if bytes(entry) != b"null"] if isinstance(found, list) else None


def _is_row(fields: Any) -> bool:
    return isinstance(fields, dict) and {"id", "name", "variants"} <= fields.keys()


def _has_rows(rows: Sequence[msgspec.Raw]) -> bool:
    """Whether one of the rows is a product: a single odd one does not make it another list."""
    return any(_is_row(_fields_or_list(row)) for row in rows)


def _product_list(fields: Fields) -> Page | None:
    """The page, None if it is no product list."""
    rows = _listed(fields.get("list", fields.get("products")))
    if rows is None or not {"total", "pageSize", "sortingMethods"} & fields.keys():
        return None
    if rows and not _has_rows(rows):
        return None
    terms = promo_terms(_listed(fields.get("promos")) or ())
    total, pages = _totals(fields.get("total", msgspec.Raw()), fields.get("pageSize", msgspec.Raw()), len(rows))
    one = _is_one_category(rows, _listed(fields.get("filters")) or ())
    return Page([with_terms(row, terms) for row in rows] if terms else rows, total, pages, partial=one)


def _totals(total: msgspec.Raw, page_size: msgspec.Raw, rows: int) -> tuple[int | None, int | None]:
    """(rows, pages) of the whole list, by a page of `rows`."""
    count = parse_count(total)
    return count, page_count(count, parse_count(page_size), rows)


class _Category(msgspec.Struct):
    name: str | None = None


class _InCategory(msgspec.Struct):
    category: _Category | None = None


_category = msgspec.json.Decoder(_InCategory)


class _Filter(msgspec.Struct):
    key: str | None = None
    options: list[msgspec.Raw] | None = None


def _is_one_category(rows: Sequence[msgspec.Raw], filters: Sequence[msgspec.Raw]) -> bool:
    """Whether all rows are of one category and the shop has others: the answer does not say which category was asked for."""
    try:
        options = [
            len(f.options or ())
            for f in (msgspec.json.decode(raw, type=_Filter) for raw in filters)
            if f.key == "category"
        ]
        if not rows or not options or options[0] < 2:
            return False
        found = set()
        for raw in rows:
            category = _category.decode(raw).category
            found.add(category.name if category is not None else None)
            if len(found) > 1:
                return False
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _titled_rows(entries: Sequence[msgspec.Raw], body: bytes) -> Page | None:
    """The products of titled rows, or of a bare list; None if it is neither."""
    items: list[msgspec.Raw] = []
    known = False
    for entry in entries:
        fields = _fields_or_list(entry)
        products = _listed(fields.get("products")) if isinstance(fields, dict) else None
        if products is not None and isinstance(fields, dict) and "total" in fields:
            known = True
            items.extend(products)
        elif _is_row(fields):
            known = True
            items.append(entry)
        check_count(len(items), body)
    return Page(items, None, None, partial=True) if known and (not items or _has_rows(items)) else None


def _no_menu(content: list[msgspec.Raw] | Fields, status: int, body: bytes) -> BadPayload:
    sample = content if isinstance(content, dict) else _fields_or_list(content[0]) if content else None
    if isinstance(sample, dict):
        for names, what in _OTHERS:
            if names <= sample.keys():
                return NotAMenu(with_status(f"the response is {what} of Sweed, not a menu", status), body)
    return missing("menu", "list", status, body)


def _again(fields: Fields) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(fields))


_QUERIES = re.compile(rb"window\.__sw_qc\s*=\s*(?=\{)")
_json = json.JSONDecoder()


class _State(msgspec.Struct):
    data: msgspec.Raw = msgspec.Raw()


class _Query(msgspec.Struct):
    state: _State | None = None
    queryKey: list[msgspec.Raw] | None = None  # noqa: N815 - the wire's name


class _Queries(msgspec.Struct):
    queries: list[_Query]


_queries = msgspec.json.Decoder(_Queries)


_LISTS = frozenset({"GetProductList", "GetProductCarouselList", "GetProductByVariantId"})


def lists_in(body: bytes) -> list[bytes]:
    """The lists of products in a shop's page as JSON, without names of their queries; any other answer as it is."""
    start = _QUERIES.search(body)
    return [body] if start is None else [bytes(data) for name, data in _cached(body, start.end()) if name in _LISTS]


def _shop_page(body: bytes, start: int) -> Page:
    """The products in a shop's page. The first one carries the store's record and configuration."""
    items: list[msgspec.Raw] = []
    store: dict[str, msgspec.Raw] = {}
    lists = False
    for name, data in _cached(body, start):
        found = _fields_or_list(data)
        if name == "GetStoreInfo" and isinstance(found, dict):
            store["info"] = data
        elif name == "GetStoreConfig" and isinstance(found, dict):
            store["config"] = _again({key: found[key] for key in ("id", "licenseCode", "timezoneName") if key in found})
        elif name in _LISTS and found is not None:
            lists = True
            for part in _parts(found):
                page = _product_list(part) if isinstance(part, dict) else _titled_rows(part, body)
                items.extend(page.items if page is not None else ())
    if not lists:
        raise NotAMenu("the response is a page of a Sweed shop without products", body)
    check_count(len(items), body)
    if items and store:
        items[0] = with_field(items[0], "pageStore", msgspec.json.encode(store))
    return Page(items, None, None, partial=True)


def _parts(found: list[msgspec.Raw] | Fields) -> Iterator[list[msgspec.Raw] | Fields]:
    """The answers in a cached query, which has `pages` where a page loads more on scrolling."""
    pages = _listed(found.get("pages")) if isinstance(found, dict) else None
    if pages is None:
        yield found
    for page in pages or ():
        if (part := _fields_or_list(page)) is not None:
            yield part


def _cached(body: bytes, start: int) -> Iterator[tuple[str, msgspec.Raw]]:
    """(operation, answer) of each query in a shop's page. Raises BadPayload of kind truncated or schema."""
    text = body[start:].decode("utf-8", "replace")
    try:
        _, end = _json.raw_decode(text)
    except (ValueError, RecursionError) as error:
        raise BadPayload(
            "truncated", "the query cache in the shop's page (window.__sw_qc) is no JSON or cut off", body
        ) from error
    for query in decode(text[:end].encode("utf-8", "surrogatepass"), _queries).queries:
        key = query.queryKey[0] if query.queryKey else msgspec.Raw()
        name = bytes(key).decode("utf-8", "replace").strip('" ').rpartition("/")[2]
        if query.state is not None and bytes(query.state.data) not in (b"", b"null"):
            yield name, query.state.data


def read_record(body: bytes, status: int = 200) -> msgspec.Raw | None:
    """The raw record of a store or its configuration; None if Sweed has none (null, an empty answer). Raises BadPayload as `read`."""
    if not body.strip() or body.strip() == b"null":
        return None
    content = _unwrapped(decode(body, _content, status), status, body)
    if isinstance(content, list) or "id" not in content:
        raise missing("store", "id", status, body)
    return _again(content)


_APP_SETTINGS = re.compile(rb'"storeAppSettings"\s*:\s*\{\s*"id"\s*:\s*(\d{1,9})\b')


def store_of_page(body: bytes) -> str | None:
    """The id of the store whose shop page this is (`window.__sw`), None if it names none."""
    match = _APP_SETTINGS.search(body)
    return match[1].decode() if match else None
