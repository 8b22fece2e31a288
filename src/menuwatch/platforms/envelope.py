"""Decodes the body of an answer as JSON of a given type, and classifies bodies that are not. Pure.

A web server can send anything with status 200 (a challenge page, a truncated answer, nothing): it becomes a BadPayload with
kind and message.
"""

from __future__ import annotations

import contextlib
import re
from typing import Any, TypeVar

import msgspec

from menuwatch.core.errors import BadPayload
from menuwatch.core.json_bounds import TooManyValues, check_elements
from menuwatch.platforms.json_repair import fix_escapes

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
            return _bounded(fix_escapes(text), decoder)
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
