"""Files of recorded answers, sorted into menus. Reads files and nothing else."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from menuwatch.archive import document
from menuwatch.archive.document import Document
from menuwatch.core.errors import BadPayload, Refused
from menuwatch.payloads import extent
from menuwatch.platforms.base import Platform

_GZIP = b"\x1f\x8b"
_OURS = b'{"format":"menuwatch-payload/'


class NoMenu(Refused):
    """A raw answer that is no menu. `body` is the answer, `reason` says what is wrong with it."""

    def __init__(self, path: Path, body: bytes, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.body = body
        self.reason = reason


@dataclass(slots=True, kw_only=True)
class RecordedMenu:
    """The pages of one menu: those of one store in raw files, in their order, or those of one archive file."""

    platform: Platform
    source: Path
    """The first of its files."""
    store: str | None
    """The platform's id of the store, None where the files do not say."""
    fetched_at: datetime | None = None
    """When an archive file's menu was fetched; a raw file does not say."""
    pages: list[bytes] = field(default_factory=list)
    complete: bool | None = None
    """What an archive file says of itself; a raw file says nothing."""
    _ids: set[str] = field(default_factory=set)
    _nameless: int = 0
    _total: int | None = None
    _total_pages: int | None = None

    def add(self, page: bytes) -> str | None:
        """Takes a page, unless it is one of its pages already; returns the id of the store that its items name. Raises BadPayload."""
        items = self.platform.split(page)
        if page not in self.pages:
            self.pages.append(page)
            for item in items:
                name = self.platform.identity(item)
                if name is None:
                    self._nameless += 1
                else:
                    self._ids.add(name)
            total, total_pages = self.platform.totals(page)
            self._total = _larger(self._total, total)
            self._total_pages = _larger(self._total_pages, total_pages)
        return self.platform.store_of(items)

    @property
    def product_count(self) -> int:
        """Distinct products; an item without a readable id counts as one of its own."""
        return len(self._ids) + self._nameless

    @property
    def total_count(self) -> int | None:
        """The largest total that a page tells."""
        return self._total

    @property
    def shortfall(self) -> str | None:
        """What part of the menu this is, in words; None where it is all of it. The crawl that an archive file is of read totals as
        they came, so its word counts before them."""
        if self.complete:
            return None
        part = extent.shortfall(
            products=self.product_count, total=self._total, pages=len(self.pages), total_pages=self._total_pages
        )
        return part or (f"{self.product_count} products" if self.complete is False else None)


def _larger(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)


def read_file(path: Path) -> bytes | Document:
    """A raw answer, or the document of one of our own archive files, plain or gzip-compressed. Raises Refused in one line."""
    try:
        data = path.read_bytes()
        if data.startswith(_GZIP):
            data = gzip.decompress(data)
    except FileNotFoundError:
        raise Refused(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise Refused(f"{path}: is a folder; name the files in it") from None
    except (OSError, EOFError, zlib.error) as error:
        raise Refused(f"{path}: cannot be read: {error}") from error
    if not data.strip():
        raise Refused(f"{path}: the file is empty")
    if not data.lstrip().startswith(_OURS):
        return data
    try:
        return document.decode(data)
    except Refused as error:
        raise Refused(f"{path}: {error}") from error


def collect(
    platforms: Mapping[str, Platform], raw: Platform, files: Sequence[Path], *, store: str | None
) -> list[RecordedMenu]:
    """The menus in these files, archive files by their time and before raw ones, which are of the platform `raw`. `store` is the
    store of files that name none.

    Raises Refused for a file that cannot be used, NoMenu for a raw answer that is none.
    """
    archived: list[RecordedMenu] = []
    menus: dict[str | None, RecordedMenu] = {}
    for path in files:
        found = read_file(path)
        if isinstance(found, Document):
            archived.append(_archived(platforms, path, found))
            continue
        alone = RecordedMenu(platform=raw, source=path, store=None)
        try:
            alone.store = alone.add(found)
        except BadPayload as error:
            raise NoMenu(path, found, f"{error.kind}: {error}") from error
        if alone.store in menus:
            menus[alone.store].add(found)
        else:
            menus[alone.store] = alone
    result = [*sorted(archived, key=lambda menu: menu.fetched_at or datetime.max.replace(tzinfo=UTC)), *menus.values()]
    if store is None and (nameless := next((menu for menu in result if menu.store is None), None)):
        raise Refused(f"{nameless.source}: does not say which store it is of; name it with --store")
    named = {menu.store or "one that is not named" for menu in result}
    if store is not None and len(named) > 1:
        raise Refused(f"--store {store}: the files are of {len(named)} stores ({', '.join(sorted(named))})")
    return result


def _archived(platforms: Mapping[str, Platform], path: Path, found: Document) -> RecordedMenu:
    platform = platforms.get(found.platform)
    if platform is None:
        raise Refused(f"{path}: is of platform {found.platform!r}, which is not known here ({', '.join(platforms)})")
    if found.broken or not found.pages:
        raise Refused(f"{path}: holds no menu but an answer that was rejected when it was fetched")
    menu = RecordedMenu(
        platform=platform,
        source=path,
        store=found.platform_dispensary_id or None,
        fetched_at=found.fetched_at,
        complete=found.whole,
    )
    try:
        for page in found.pages:
            menu.add(page)
    except BadPayload as error:
        raise Refused(f"{path}: {error.kind}: {error}") from error
    # Its pages as they are, repeats included: the same bytes as when it was fetched.
    menu.pages = list(found.pages)
    return menu
