"""The archived form of one crawl: a JSON document that holds the pages' bodies verbatim. Pure.

A document says enough about itself to be loaded into another database: platform, store, time, whether it is the whole menu.

| field | holds |
|-------|-------|
| `pages` | the pages that are strict JSON, byte for byte, in order |
| `margins` | `[position, before, after]` for a page that has white space around it |
| `encoded` | `[position, Base64]` for a page that is no strict JSON but can be read (a byte order mark, half an escape) |
| `broken` | Base64 of answers that are no pages at all (a block page, a cut-off answer): only what the caller says is so |

Positions count all pages, so decoding gives every page back in its place, with the same bytes.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from datetime import datetime
from hashlib import sha256

import msgspec

from menuwatch.core.errors import Refused

FORMAT = "menuwatch-payload/1"

_SPACE = b" \t\n\r"
_DEPTH = 100
"""A page must be readable at this depth: it stands inside a document, and readers differ in how deep they go."""


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
        """Hash of the bodies alone, in order: two crawls that got the same answers have the same one."""
        digest = sha256()
        for body in (*self.pages, *self.broken):
            digest.update(len(body).to_bytes(8, "big"))
            digest.update(body)
        return digest.hexdigest()


def is_json(body: bytes) -> bool:
    """Whether the body is strict JSON that can stand in a document as it is."""
    try:
        body.decode()
        msgspec.json.decode(body, type=msgspec.Raw)
        msgspec.json.decode(b"[" * _DEPTH + body + b"]" * _DEPTH, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def encode(document: Document) -> bytes:
    """The document's bytes, before compression."""
    raw = _Document(
        format=FORMAT,
        platform=document.platform,
        platform_dispensary_id=document.platform_dispensary_id,
        fetched_at=document.fetched_at,
        whole=document.whole,
        pages=[],
        margins=[],
        encoded=[],
        broken=[base64.b64encode(body).decode() for body in document.broken],
    )
    for position, body in enumerate(document.pages):
        if not is_json(body):
            raw.encoded.append((position, base64.b64encode(body).decode()))
            continue
        text = body.strip(_SPACE)
        raw.pages.append(msgspec.Raw(text))
        if text != body:
            before, _, after = body.partition(text)
            raw.margins.append((position, before.decode(), after.decode()))
    return msgspec.json.encode(raw)


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
        raise Refused(f"this is no archive file: {error}") from error


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
    """(answers that are JSON, answers that are not): how a rejected answer is kept, legible where it can be."""
    return tuple(b for b in answers if is_json(b)), tuple(b for b in answers if not is_json(b))
