"""Decodes the body of an answer as JSON of a given type, and classifies bodies that are not. Pure.

A web server can send anything with status 200 (a challenge page, a truncated answer, nothing): it becomes a BadPayload with
kind and message.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from menuwatch.core.errors import BadPayload
from menuwatch.core.json_bounds import TooManyValues, check_elements
from menuwatch.platforms.json_repair import fix_escapes
from menuwatch.platforms.model import Page

_BOM = b"\xef\xbb\xbf"
_TITLE = re.compile(rb"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
MAX_ITEMS = 200_000
"""Maximum items of a menu, or stores of a list: the largest menus have some thousands."""
MAX_LIST_BYTES = 16_000_000
"""Maximum bytes of one page of a store list: 100 records of the largest kind have 6 million."""
_MOST = 1_000_000_000
"""Larger counts are invalid."""

T = TypeVar("T")


def decode(body: bytes, decoder: msgspec.json.Decoder[T], status: int = 200) -> T:
    """Decodes the body. Raises BadPayload of kind html, truncated, schema or limits; `status` (HTTP) is only used in the
    message.
    """
    text = body.removeprefix(_BOM).lstrip()
    try:
        try:
            return _bounded(text, decoder)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:
            if b"\\u" not in text:
                raise
            return _bounded(fix_escapes(text, keep_nul=True), decoder)
    except TooManyValues as error:
        raise BadPayload(
            "limits", with_status(f"the response is too large for a menu: {error}", status), body
        ) from error
    except msgspec.ValidationError as error:
        raise BadPayload(
            "schema", with_status(f"the response does not have the structure of a menu: {error}", status), body
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _no_json(text, error, body, status) from error
    except RecursionError as error:
        raise BadPayload("schema", with_status("the response is nested too deeply", status), body) from error


def _bounded(text: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    check_elements(text)
    return decoder.decode(text)


def check_list(body: bytes) -> None:
    """Raises BadPayload of kind limits if a store list is too large: all its records are in memory at once."""
    if len(body) > MAX_LIST_BYTES:
        raise BadPayload("limits", f"the list of stores has {len(body):,} bytes, more than {MAX_LIST_BYTES:,}", body)


def check_count(count: int, body: bytes) -> None:
    """Raises BadPayload of kind limits for more items than a menu can have."""
    if count > MAX_ITEMS:
        raise BadPayload("limits", f"the response has {count:,} items; a menu has at most {MAX_ITEMS:,}", body)


def _no_json(text: bytes, error: Exception, body: bytes, status: int) -> BadPayload:
    if not text:
        return BadPayload("truncated", with_status("the response is empty (0 bytes)", status), body)
    if text.startswith(b"<"):
        title = _TITLE.search(text[:20_000])
        named = f" titled “{excerpt(title[1])}”" if title else ""
        return BadPayload("html", with_status(f"the response is a web page{named}, not JSON", status), body)
    if not text.startswith((b"{", b"[")):
        return BadPayload("html", with_status(f"the response is text, not JSON: “{excerpt(text[:200])}”", status), body)
    if "truncated" in str(error):
        return BadPayload(
            "truncated", with_status(f"the response was truncated after {len(body):,} bytes", status), body
        )
    return BadPayload("schema", with_status(f"the response is invalid JSON: {error}", status), body)


def short_value(raw: msgspec.Raw, most: int = 64) -> Any:
    """The value of a short piece of JSON; None if it is absent or has more than `most` bytes. Fields of any type are kept raw
    until they are read, because they may be large.
    """
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        if memoryview(raw).nbytes <= most:
            return msgspec.json.decode(raw)
    return None


def missing(what: str, path: str, status: int, body: bytes) -> BadPayload:
    """A BadPayload of kind no_data: the response has no menu or no stores."""
    return BadPayload("no_data", with_status(f"the response has no {what}: {path} is missing or null", status), body)


def excerpt(text: bytes) -> str:
    """At most 160 characters of a text, on one line."""
    shown = " ".join(text.decode("utf-8", "replace").split())
    return shown if len(shown) <= 160 else shown[:159] + "…"


def with_status(message: str, status: int) -> str:
    """The message, with the HTTP status if that is an error."""
    return message if status < 400 else f"{message} (HTTP {status})"


def parse_count(raw: msgspec.Raw) -> int | None:
    """Parses a count; None if it is not plausible."""
    value = short_value(raw)
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST else None


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """One way in which an answer wraps its items. Paths are dotted keys.

    `items` is the path of the list, "" for a bare list; `known` a Struct whose required fields an item of the platform has, needed
    where the path alone does not say whose items these are; `total` and `pages` are the paths of the whole menu's numbers. Without a
    total such an answer is part of a menu: nothing says that it is all.
    """

    items: str
    known: type[msgspec.Struct] | None = None
    total: str | None = None
    pages: str | None = None


_LOOKED_AT = 20
"""Items that are tried before a list is taken for another platform's."""
_raw = msgspec.json.Decoder(msgspec.Raw)
_raw_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_raw_list = msgspec.json.Decoder(list[msgspec.Raw])


def read_wrapped(body: bytes, envelopes: Sequence[Envelope], status: int = 200) -> Page | None:
    """The page in the first envelope that fits, None if none does. Raises BadPayload as `decode`, and of kind limits."""
    root = decode(body, _raw, status)
    for envelope in envelopes:
        found = _at(root, envelope.items)
        items = _entries(found) if found is not None else None
        if items is None or not _is_known(items, envelope.known):
            continue
        check_count(len(items), body)
        total, pages = (parse_count(_at(root, path) or msgspec.Raw()) if path else None for path in
                        (envelope.total, envelope.pages))  # fmt: skip
        return Page(items, total, pages, partial=total is None and pages is None)
    return None


def _at(value: msgspec.Raw, path: str) -> msgspec.Raw | None:
    """The value at a path of keys, None where a step is missing or no object."""
    for step in path.split(".") if path else ():
        try:
            value = _raw_object.decode(value)[step]
        except (msgspec.MsgspecError, KeyError):
            return None
    return value


def _entries(value: msgspec.Raw) -> list[msgspec.Raw] | None:
    try:
        return _raw_list.decode(value)
    except msgspec.MsgspecError:
        return None


def _is_known(items: Sequence[msgspec.Raw], known: type[msgspec.Struct] | None) -> bool:
    """Whether one of the first items has the fields of the platform's items. (One bad item does not make the rest unknown.)"""
    if known is None:
        return True
    for item in items[:_LOOKED_AT]:
        with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            msgspec.json.decode(item, type=known)
            return True
    return False


_NAMED = 5
_LONGEST_NAME = 40


def outline(body: bytes) -> str:
    """What a JSON body holds, for messages: `an object with data.stores, meta`, `a list of 363 objects with name, city`."""
    try:
        value = msgspec.json.decode(fix_escapes(body.removeprefix(_BOM)))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TooManyValues):
        return "no readable JSON"
    if isinstance(value, dict):
        return f"an object with {_keys(value)}"
    if isinstance(value, list):
        first = f" objects with {_keys(value[0])}" if value and isinstance(value[0], dict) else " values"
        return f"a list of {len(value):,}{first}"
    return "a single value"


def _keys(value: dict[str, Any]) -> str:
    """Names of the fields; of an envelope `data` those inside."""
    names = []
    for name, entry in value.items():
        inside = [f"{name}.{one}" for one in entry] if name == "data" and isinstance(entry, dict) else []
        names += inside or [name]
    shown = ", ".join(excerpt(name.encode()[:_LONGEST_NAME]) for name in names[:_NAMED]) or "no fields"
    return shown + (f" and {len(names) - _NAMED:,} more fields" if len(names) > _NAMED else "")
