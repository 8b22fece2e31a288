"""Groups recorded answers into menus. Pure but for reading the files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from menuwatch.archive import document
from menuwatch.archive.document import Document
from menuwatch.core.errors import BadPayload, NotAMenu, Refused, unknown_value
from menuwatch.pipeline.recording_reader import LeftOut, read_file
from menuwatch.platforms.base import Platform
from menuwatch.platforms.envelope import check_count, outline
from menuwatch.platforms.model import FoundStore

_TRIED = 10
"""Items that are read to decide whose answer it is."""

_OF_ANOTHER = frozenset({"schema", "no_data"})
"""BadPayload kinds for answers of another platform."""


class NoMenu(Refused):
    """A raw answer that is not a menu. `body` is the answer, `reason` the error, `kind` is a BadPayload's."""

    def __init__(self, source: str, body: bytes, reason: str, *, kind: str, platform: Platform) -> None:
        super().__init__(f"{source}: {reason}")
        self.body = body
        self.reason = reason
        self.kind = kind
        self.platform = platform


class Recordings(Struct, kw_only=True):
    """Content of the files: menus (archive files by time, then raw ones), and what was left out."""

    menus: list[RecordedMenu] = []
    left_out: list[LeftOut] = []
    files: int = 0
    """Number of files, counting each member of a tar archive."""
    repeated: int = 0
    """Files whose page was already in another one."""


class RecordedMenu(Struct, kw_only=True):
    """The pages of one menu: those of one store from raw files, in order, or those of one archive file."""

    platform: Platform
    source: str
    """The first of its files."""
    member: bool = False
    """That file is a member of a tar archive."""
    found: FoundStore | None = None
    """The store's data found in the items."""
    store: str | None
    """The platform's id of the store, None if the files do not say."""
    fetched_at: datetime | None = None
    """When an archive file's menu was fetched; None for raw files."""
    pages: list[bytes] = []
    complete: bool | None = None
    """Whether an archive file says its menu is complete; None for raw files."""
    partial: bool = False
    """A raw file says that it is a part of a menu."""
    _ids: set[str] = set()
    _rows: set[str] = set()
    _nameless: int = 0
    _total: int | None = None
    _total_pages: int | None = None

    def add(self, page: bytes) -> bool:
        """Adds a page unless it is a repeat; returns whether it was added. Raises BadPayload."""
        items = self.platform.split(page)
        new = page not in self.pages
        if new:
            self.pages.append(page)
            for item in items:
                name, row = self.platform.identity(item), self.platform.row_key(item)
                if name is None or row is None:
                    self._nameless += 1
                else:
                    self._ids.add(name)
                    self._rows.add(row)
            check_count(self.product_count, page)
            read = self.platform.read_page(page)
            self.partial = self.partial or read.partial
            self._total = _larger(self._total, read.total_count)
            self._total_pages = _larger(self._total_pages, read.total_pages)
        if self.found is None:
            self.found = self.platform.store_in(items)
        return new

    @property
    def product_count(self) -> int:
        """Number of distinct products; each item without a readable id counts as one."""
        return len(self._ids) + self._nameless

    @property
    def total_count(self) -> int | None:
        """The largest total in the pages."""
        return self._total

    @property
    def shortfall(self) -> str | None:
        """Describes which part of the menu this is; None if complete. The crawl behind an archive file checked totals as they
        came, so its own flag takes precedence.
        """
        if self.complete:
            return None
        part = None
        if self._total is not None:
            count = len(self._rows) + self._nameless
            if count < self._total:
                part = f"{count} of {self._total} products"
        elif self._total_pages is not None and len(self.pages) < self._total_pages:
            part = f"{len(self.pages)} of {self._total_pages} pages"
        return part or (f"{self.product_count} products" if self.complete is False or self.partial else None)


def _larger(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)


def collect(
    platforms: Mapping[str, Platform],
    raw: Platform | None,
    files: Sequence[Path],
    *,
    store: str | None,
    anonymous: bool = False,
) -> Recordings:
    """Groups the files into menus. Raw answers are of the platform `raw`, else of the one whose format matches. `store` is the
    store of files that name none; `anonymous` allows menus without a store.

    Unusable members of a tar archive and answers that are not menus are left out if there is other content; otherwise raises
    Refused, or NoMenu for a raw answer that is not a menu.
    """
    sorter = _Sorter(platforms, raw, store, anonymous)
    for path in files:
        for source, found in read_file(path):
            sorter.take(source, found, member=source != str(path))
    return sorter.result()


class _Sorter:
    def __init__(
        self, platforms: Mapping[str, Platform], raw: Platform | None, store: str | None, anonymous: bool
    ) -> None:
        self._platforms = platforms
        self._raw = raw
        self._store = store
        self._anonymous = anonymous
        self._archived: list[RecordedMenu] = []
        self._menus: dict[tuple[str, str | None], RecordedMenu] = {}
        self._found = Recordings()
        self._first: Refused | None = None

    def take(self, source: str, found: bytes | Document | LeftOut, *, member: bool) -> None:
        self._found.files += 1
        if isinstance(found, LeftOut):
            self._leave_out(found, Refused(f"{found.source}: {found.reason}"))
            return
        try:
            if isinstance(found, Document):
                self._archived.append(_archived(self._platforms, source, found, member=member))
            else:
                self._add(source, found, member=member)
        except Refused as error:
            if not member and not isinstance(error, NoMenu):
                raise
            empty = isinstance(error, NoMenu) and error.kind == "empty"
            self._leave_out(LeftOut(source=source, reason=str(error).removeprefix(f"{source}: "), empty=empty), error)

    def _leave_out(self, what: LeftOut, error: Refused) -> None:
        self._found.left_out.append(what)
        if self._first is None or not what.empty:
            self._first = error

    def _add(self, source: str, body: bytes, *, member: bool) -> None:
        platform = self._raw or _recognized(self._platforms, source, body)
        alone = RecordedMenu(platform=platform, source=source, store=None, member=member)
        try:
            alone.add(body)
        except BadPayload as error:
            raise NoMenu(source, body, f"{error.kind}: {error}", kind=error.kind, platform=platform) from error
        alone.store = alone.found.platform_dispensary_id if alone.found is not None else None
        if alone.store is None and self._store is None and not self._anonymous:
            raise Refused(f"{source}: does not identify its store: pass --store")
        others = self._menus.setdefault((platform.name, alone.store), alone)
        if others is not alone and not others.add(body):
            self._found.repeated += 1

    def result(self) -> Recordings:
        by_time = sorted(self._archived, key=lambda menu: menu.fetched_at or datetime.max.replace(tzinfo=UTC))
        self._found.menus = [*by_time, *self._menus.values()]
        if not self._found.menus and self._first is not None:
            raise self._first
        named = {menu.store or "one that is not named" for menu in self._found.menus}
        if self._store is not None and len(named) > 1:
            raise Refused(f"--store {self._store}: the files belong to {len(named)} stores ({_some(sorted(named))})")
        return self._found


def _some(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _recognized(platforms: Mapping[str, Platform], source: str, body: bytes) -> Platform:
    """The platform whose format this answer has. Raises NoMenu if none matches."""
    errors: list[tuple[Platform, BadPayload]] = []
    fitting: list[tuple[Platform, Sequence[msgspec.Raw]]] = []
    for platform in platforms.values():
        try:
            fitting.append((platform, platform.split(body)))
        except BadPayload as error:
            if error.kind == "empty" and not fitting:
                return platform
            errors.append((platform, error))
    if fitting:
        return max(fitting, key=lambda pair: _fit(*pair))[0] if len(fitting) > 1 else fitting[0][0]
    for platform, refused in errors:
        if isinstance(refused, NotAMenu):
            raise NoMenu(source, body, f"{refused.kind}: {refused}", kind=refused.kind, platform=platform) from refused
    # Prefer the error of a platform that recognizes more of the answer.
    platform, best = next((pair for pair in errors if pair[1].kind not in _OF_ANOTHER), errors[0])
    reason = f"{best.kind}: {best}"
    if best.kind in _OF_ANOTHER and len(errors) > 1:
        known = ", ".join(other.name for other, _ in errors)
        reason = (
            f"{best.kind}: unrecognized format, not a menu of any known platform ({known}): it is {outline(body)}; "
            "--platform NAME says what a menu of that platform lacks"
        )
    raise NoMenu(source, body, reason, kind=best.kind, platform=platform) from best


def _fit(platform: Platform, items: Sequence[msgspec.Raw]) -> tuple[int, int]:
    """How well a platform reads the first items of a page: platforms wrap their items alike (`{"data": [...]}`)."""
    normalized = platform.normalize(items[:_TRIED])
    return len(normalized.products), -len(normalized.warnings)


def _archived(platforms: Mapping[str, Platform], source: str, found: Document, *, member: bool) -> RecordedMenu:
    platform = platforms.get(found.platform)
    if platform is None:
        raise Refused(f"{source}: {unknown_value('platform', found.platform, platforms)}")
    if found.broken or not found.pages:
        raise Refused(f"{source}: contains a rejected response, not a menu")
    if (why := document.implausible(found.fetched_at)) is not None:
        raise Refused(f"{source}: {why}")
    menu = RecordedMenu(
        platform=platform,
        source=source,
        store=found.platform_dispensary_id or None,
        fetched_at=found.fetched_at,
        complete=found.whole,
        member=member,
    )
    try:
        for page in found.pages:
            menu.add(page)
    except BadPayload as error:
        raise Refused(f"{source}: {error.kind}: {error}") from error
    # Keep its pages unchanged, including repeats, for the same bytes as when it was fetched.
    menu.pages = list(found.pages)
    return menu
