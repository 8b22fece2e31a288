"""The archived form of one crawl: a JSON document that holds the pages' bodies verbatim. Pure.

A document says enough about itself to be loaded into another database: platform, store, time, whether it is the whole menu.

| field | holds |
|-------|-------|
| `pages` | the pages that are strict JSON, byte for byte, in order |
| `margins` | `[position, before, after]` for a page that has white space around it |
| `encoded` | `[position, Base64]` for a page that is no strict JSON but can be read (a byte order mark, half an escape) |
| `broken` | Base64 of answers that are no pages at all (a block page, a cut-off answer): only what the caller says is so |

Positions count all pages, so decoding gives every page back in its place, with the same bytes.

What the store answered comes first in a document, and who was asked and when comes after it. So one hash serves twice: what it
is where the answers end is theirs alone (`content_sha256`), and at the end it is the whole document's.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from hashlib import sha256

import msgspec
from msgspec import Struct

from menuwatch.core.errors import Refused
from menuwatch.core.strict_json import is_strict

FORMAT = "menuwatch-payload/1"

YEARS = range(2000, 3000)
"""Years accepted for `fetched_at`. Future times are checked when the menu is applied, by the database's clock."""

_SPACE = b" \t\n\r"
_START = b'{"format":%b,"pages":[' % msgspec.json.encode(FORMAT)


class _Document(msgspec.Struct, omit_defaults=True):
    format: str
    platform: str
    platform_dispensary_id: str
    fetched_at: datetime
    whole: bool = True
    pages: list[msgspec.Raw] = []
    margins: list[tuple[int, str, str]] = []
    encoded: list[tuple[int, str]] = []
    broken: list[str] = []


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """One crawl of one store. `broken` holds answers that are no pages; `whole` is false when pages are known to be missing."""

    platform: str
    platform_dispensary_id: str
    fetched_at: datetime
    whole: bool = True
    pages: tuple[bytes, ...]
    broken: tuple[bytes, ...] = ()

    @property
    def content_sha256(self) -> str:
        """Hash of the answers alone, in order: equal for two crawls with the same answers."""
        digest = sha256()
        for piece in compose(self).answers:
            digest.update(piece)
        return digest.hexdigest()


class _About(msgspec.Struct, omit_defaults=True):
    platform: str
    platform_dispensary_id: str
    fetched_at: datetime
    whole: bool = True


class Composed(Struct, frozen=True):
    """A document's bytes in two parts, `answers` and `about`. Large chunks are the page bodies themselves, not copies."""

    answers: tuple[bytes, ...]
    about: bytes


def compose(document: Document, *, strict: Collection[int] = ()) -> Composed:
    """Composes the document's bytes, before compression. `strict` are the positions of pages known to be strict JSON; the others are
    checked.
    """
    pieces: list[bytes] = []
    margins: list[tuple[int, str, str]] = []
    encoded: list[int] = []
    for position, body in enumerate(document.pages):
        if position not in strict and not is_strict(body):
            encoded.append(position)
            continue
        text = body.strip(_SPACE)
        pieces += (b"," if pieces else _START, text)
        if text != body:
            before, _, after = body.partition(text)
            margins.append((position, before.decode(), after.decode()))
    pieces.append(b"]" if pieces else _START + b"]")
    if margins:
        pieces += (b',"margins":', msgspec.json.encode(margins))
    for number, position in enumerate(encoded):
        pieces += (
            b"," if number else b',"encoded":[',
            b'[%d,"' % position,
            base64.b64encode(document.pages[position]),
            b'"]',
        )
    pieces += [b"]"] if encoded else []
    for number, body in enumerate(document.broken):
        pieces += (b"," if number else b',"broken":[', b'"', base64.b64encode(body), b'"')
    pieces += [b"]"] if document.broken else []
    about = _About(document.platform, document.platform_dispensary_id, document.fetched_at, document.whole)
    return Composed(tuple(pieces), b"," + msgspec.json.encode(about)[1:])


def encode(document: Document) -> bytes:
    """The document's bytes as one object."""
    composed = compose(document)
    return b"".join((*composed.answers, composed.about))


def decode(data: bytes) -> Document:
    """Reads what `encode` wrote; raises Refused for anything else."""
    try:
        raw = msgspec.json.decode(data, type=_Document)
        if raw.format != FORMAT:
            raise Refused(f"this archive file has format {raw.format!r}; this version reads {FORMAT!r}")
        return Document(
            platform=raw.platform,
            platform_dispensary_id=raw.platform_dispensary_id,
            fetched_at=raw.fetched_at,
            whole=raw.whole,
            pages=tuple(_pages(raw)),
            broken=tuple(_unpacked(body) for body in raw.broken),
        )
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Refused(f"this is not an archive file: {error}") from error


def implausible(fetched_at: datetime) -> str | None:
    """Why a menu cannot have been fetched at that time, None if it can."""
    if fetched_at.tzinfo is None:
        return f"fetched_at {fetched_at.isoformat()} has no time zone: write it with one, for example with Z at its end"
    if fetched_at.year not in YEARS:
        return f"fetched_at {fetched_at.isoformat()} is not a plausible time: its year must be from {YEARS[0]} to {YEARS[-1]}"
    return None


def _pages(raw: _Document) -> Iterable[bytes]:
    encoded = {position: _unpacked(body) for position, body in raw.encoded}
    margins = {position: (before.encode(), after.encode()) for position, before, after in raw.margins}
    count = len(raw.pages) + len(encoded)
    if len(encoded) != len(raw.encoded) or not (encoded.keys() | margins.keys()) <= set(range(count)):
        raise ValueError("its pages do not fit together")
    verbatim = iter(raw.pages)
    for position in range(count):
        if position in encoded:
            yield encoded[position]
        else:
            before, after = margins.get(position, (b"", b""))
            yield before + bytes(next(verbatim)) + after


def _unpacked(body: str) -> bytes:
    return base64.b64decode(body, validate=True)


def bodies(answers: Sequence[bytes]) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """Splits the answers of a rejected crawl into (JSON, not JSON), so that the readable ones stay readable in the document."""
    return tuple(b for b in answers if is_strict(b)), tuple(b for b in answers if not is_strict(b))
