"""The body of an answer as JSON of some shape, and what is said when it is none. Pure.

A web server can put anything into a body with status 200 (a challenge page, half an answer, nothing): a BadPayload whose kind and
message say which.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

from menuwatch.core.errors import BadPayload
from menuwatch.platforms.escapes import mend_escapes

_BOM = b"\xef\xbb\xbf"
_TITLE = re.compile(rb"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_MOST = 1_000_000_000
"""A count beyond this is none."""

T = TypeVar("T")


def decode(body: bytes, decoder: msgspec.json.Decoder[T], status: int = 200) -> T:
    """What the body holds. Raises BadPayload of kind html, truncated or schema; `status` (HTTP) is only told in the message."""
    text = body.removeprefix(_BOM).lstrip()
    try:
        try:
            return decoder.decode(text)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:
            if b"\\u" not in text:
                raise
            return decoder.decode(mend_escapes(text))
    except msgspec.ValidationError as error:
        raise BadPayload("schema", said(f"the answer has another shape than a menu: {error}", status), body) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _no_json(text, error, body, status) from error
    except RecursionError as error:
        raise BadPayload("schema", said("the answer is nested too deeply to be read", status), body) from error


def _no_json(text: bytes, error: Exception, body: bytes, status: int) -> BadPayload:
    if not text:
        return BadPayload("truncated", said("the answer is empty (0 bytes)", status), body)
    if text.startswith(b"<"):
        title = _TITLE.search(text[:20_000])
        named = f" titled “{excerpt(title[1])}”" if title else ""
        return BadPayload("html", said(f"the answer is a web page{named}, not JSON", status), body)
    if not text.startswith((b"{", b"[")):
        return BadPayload("html", said(f"the answer is text, not JSON: “{excerpt(text[:200])}”", status), body)
    if "truncated" in str(error):
        return BadPayload("truncated", said(f"the answer was cut off after {len(body):,} bytes", status), body)
    return BadPayload("schema", said(f"the answer is broken JSON: {error}", status), body)


def excerpt(text: bytes) -> str:
    """At most 160 characters of a text, on one line."""
    shown = " ".join(text.decode("utf-8", "replace").split())
    return shown if len(shown) <= 160 else shown[:159] + "…"


def said(message: str, status: int) -> str:
    """The message, with the HTTP status where that is an error's."""
    return message if status < 400 else f"{message} (HTTP {status})"


def whole(value: Any) -> int | None:
    """A count as platforms write it, None where it is none that makes sense."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST else None
