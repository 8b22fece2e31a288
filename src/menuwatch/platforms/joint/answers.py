"""Reads the answers of a site's search: pages of a menu, and refusals. Pure.

A page is `{"hits": {"total": 114, "hits": [{"_source": product}]}}`; newer versions of Elasticsearch have `"total": {"value": 114,
"relation": "eq"}`, and `gte` for a number that is only a lower bound. WordPress refuses a nonce, or that there is none, with 403 (or
401) and `{"code": "rest_cookie_invalid_nonce", "message": …, "data": {"status": 403}}`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from menuwatch.core import strict_json as strict
from menuwatch.core.errors import BadPayload, Permanent
from menuwatch.platforms.envelope import check_count, decode, excerpt, missing, parse_count
from menuwatch.platforms.joint.normalize import ITEMS
from menuwatch.platforms.joint.payload import Ids
from menuwatch.platforms.model import Page, PageInfo
from menuwatch.platforms.numbers import id_text

if TYPE_CHECKING:
    from menuwatch.core.http import Response


class _Hits(msgspec.Struct):
    hits: list[msgspec.Raw] | None = None
    total: msgspec.Raw = msgspec.Raw()


class _Menu(msgspec.Struct):
    hits: _Hits | None


class _Hit(msgspec.Struct):
    _source: msgspec.Raw


class _PlainHit(msgspec.Struct):
    _source: Ids


class _PlainHits(msgspec.Struct):
    hits: list[_PlainHit]
    total: msgspec.Raw = msgspec.Raw()


class _Plain(msgspec.Struct):
    """A page without anything odd in it: nearly all are."""

    hits: _PlainHits


class _Total(msgspec.Struct):
    value: msgspec.Raw = msgspec.Raw()
    relation: str = "eq"


class _WordPressError(msgspec.Struct):
    code: str
    message: str = ""


_menu = msgspec.json.Decoder(_Menu)
_hit = msgspec.json.Decoder(_Hit)
_plain = strict.Decoder(_Plain)
_total_of = msgspec.json.Decoder(_Total)
_error = msgspec.json.Decoder(_WordPressError)


class NonceRefused(Permanent):
    """The site refused a request for its nonce, or for having none. `code` is WordPress's."""

    def __init__(self, site: str, code: str, message: str) -> None:
        super().__init__(f"{site} refused the request: {message or code} ({code})")
        self.code = code


class NoRoute(Permanent):
    """The site has no search at that address."""


def read(body: bytes, status: int = 200) -> Page:
    """Parses a page, which may be empty. Raises BadPayload of kind html, truncated, schema, limits or no_data."""
    hits = decode(body, _menu, status).hits
    if hits is None or hits.hits is None:
        raise missing("menu", "hits.hits", status, body)
    check_count(len(hits.hits), body)
    return Page([_source(raw) for raw in hits.hits], _total(hits.total), None)


def _source(raw: msgspec.Raw) -> msgspec.Raw:
    """The product of a hit; the hit itself where it has none, which is then named as an item that is no product."""
    try:
        return _hit.decode(raw)._source
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return raw


def _total(raw: msgspec.Raw) -> int | None:
    if not bytes(raw).startswith(b"{"):
        return parse_count(raw)
    try:
        found = _total_of.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return parse_count(found.value) if found.relation == "eq" else None


def inspect(body: bytes, status: int, business: str) -> PageInfo:
    """What paging needs of a page of that business's menu. Raises what `read` does, and BadPayload for another one's products."""
    try:
        hits = _plain.decode(body).hits
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        page = read(body, status)
        owners = {_business_of(raw) for raw in page.items}
        info = page.inspect(ITEMS.identity)
    else:
        check_count(len(hits.hits), body)
        owners = {id_text(hit._source.businessId) for hit in hits.hits}
        info = PageInfo(tuple([hit._source.product_id() for hit in hits.hits]), _total(hits.total), None, strict=True)
    if strangers := {owner for owner in owners if owner is not None} - {business}:
        raise BadPayload("schema", f"the response has products of business {min(strangers)}, not of {business}", body)
    return info


def _business_of(raw: msgspec.Raw) -> str | None:
    item = ITEMS.decode(raw)
    return id_text(item.businessId) if item is not None else None


def check_refusal(response: Response, site: str) -> None:
    """Raises NoRoute or NonceRefused for an error of WordPress that says so."""
    if response.status not in (401, 403, 404):
        return
    try:
        error = _error.decode(response.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        if response.status == 404:
            raise NoRoute(f"{site} has no Joint menu at the known addresses (HTTP 404)") from None
        raise Permanent(
            f"{site} refused the request with HTTP {response.status}: “{excerpt(response.body[:200])}”"
        ) from None
    if error.code == "rest_no_route" or response.status == 404:
        raise NoRoute(f"{site} has no Joint menu at the known addresses ({error.code})")
    raise NonceRefused(site, error.code[:80], error.message[:200])
