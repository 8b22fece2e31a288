"""The sample of a platform: pages of a menu, and ways to change, multiply and serve its items."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from menuwatch.catalog.model import Product
from menuwatch.core.http import Response
from menuwatch.platforms.base import Platform

Path = tuple[str | int, ...]
_PLACE = "@@a place to put raw JSON@@"
_QUOTED = msgspec.json.encode(_PLACE)
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


@dataclass(frozen=True, kw_only=True)
class SentRequest:
    """A request of an adapter for a page of a menu."""

    method: str
    url: str
    params: Mapping[str, str]
    json: Any


@dataclass(frozen=True, kw_only=True)
class Sample:
    """What the checks need of a platform."""

    adapter: Platform
    pages: Sequence[bytes]
    """One or more pages of one store's menu, as they came: recorded ones, or one that has every field that is read."""
    items: str = ""
    """Path of the list of items in these pages, where it is not the adapter's `items_path`: some platforms have several shapes."""
    total: str = ""
    """Path of the number of products of the whole menu in a page (`meta.total`), if pages have one."""
    total_pages: str = ""
    """Path of the number of pages, if pages have one."""
    page_number: Callable[[SentRequest], int] | None = None
    """The page (from 0) that a request of the adapter asks for; None if it is never requested, or tested in another way."""
    wrap: Callable[[Sequence[bytes], int], bytes] | None = None
    """A page with these items of a menu of that many; by default the first page with its items and total replaced."""

    unusable: frozenset[str] = frozenset()
    """Ids of items that are not products, with the reason beside the sample."""

    @cached_property
    def raws(self) -> list[bytes]:
        """The items of all pages."""
        return [
            bytes(raw)
            for page in self.adapter.split_menu(self.pages)
            for raw in page
            if self.adapter.identity(raw) not in self.unusable
        ]

    @cached_property
    def products(self) -> dict[bytes, Sequence[Product]]:
        """What items gave that were read alone: the checks put the same neighbour beside thousands of others."""
        return {}

    @property
    def items_path(self) -> Path:
        """The steps to the list of items in a page."""
        return steps(self.items or self.adapter.items_path)

    @cached_property
    def frame(self) -> Any:
        """The first page, whose items and totals are replaced to make others."""
        return msgspec.json.decode(self.pages[0].decode("utf-8-sig", "replace"))

    def page(self, items: Sequence[bytes], total: int | None = None) -> bytes:
        """A page with these items of a menu of `total` products, by default of these."""
        count = len(items) if total is None else total
        if self.wrap is not None:
            return self.wrap(items, count)
        page = replaced(self.frame, self.items_path, [_PLACE] if items else [])
        if self.total:
            page = replaced(page, steps(self.total), count)
        if self.total_pages:
            page = replaced(page, steps(self.total_pages), -(-count // self.adapter.per_page))
        return msgspec.json.encode(page).replace(_QUOTED, b",".join(items))

    @cached_property
    def varied(self) -> list[bytes]:
        """Items that together have every field of the sample, each the first with a field that those before lack."""
        seen: set[Path] = set()
        chosen = []
        for raw in self.raws:
            shapes = {shape(path) for path, _ in leaves(msgspec.json.decode(raw))}
            if shapes - seen:
                seen |= shapes
                chosen.append(raw)
        return chosen

    def places(self) -> Iterator[tuple[Any, Path, Any]]:
        """(item, path, value) of one example of each field in the sample: of values, and of the objects and lists around them."""
        seen: set[Path] = set()
        for raw in self.varied:
            item = msgspec.json.decode(raw)
            for path, value in parts(item):
                if shape(path) not in seen:
                    seen.add(shape(path))
                    yield item, path, value

    @cached_property
    def _id_path(self) -> Path:
        """The field that makes the identity."""
        item = msgspec.json.decode(self.raws[0])
        usual = self._identity(item)
        for path, value in leaves(item):
            for number in (1, 2):  # one of them is not the id's own end
                other = self._identity(replaced(item, path, _other_id(value, number)))
                if other not in (None, usual):
                    return path
        raise AssertionError(f"no field of the first item changes its identity {usual!r}")

    def _identity(self, item: Any) -> str | None:
        return self.adapter.identity(msgspec.Raw(msgspec.json.encode(item)))

    def scaled(self, count: int) -> list[bytes]:
        """That many items with ids of their own: the sample's, over and over."""
        items: list[bytes] = []
        ids: set[str | None] = set()
        number = 0
        while len(items) < count:
            item = msgspec.json.decode(self.raws[number % len(self.raws)])
            path, copy = self._id_path, number // len(self.raws)
            made = replaced(item, path, _other_id(_at(item, path), copy)) if copy else item
            name = self._identity(made)
            if name is not None and name not in ids:
                ids.add(name)
                items.append(msgspec.json.encode(made))
            number += 1
            assert number < 20 * count + 1000, f"ids cannot be made by changing {path}"
        return items


def _other_id(value: Any, number: int) -> Any:
    """An id of the same form."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value + 10_007 * number
    if isinstance(value, str) and value:
        digits = f"{number:x}" if not value.isdecimal() else str(number)
        return value[: max(0, len(value) - len(digits))] + digits
    return value


class ScriptedSession:
    """A session that answers every request with a page, by its number."""

    def __init__(self, sample: Sample, answer: Callable[[int], bytes]) -> None:
        self._sample = sample
        self._answer = answer

    async def request(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        json: Any | None = None,
        **_: Any,
    ) -> Response:
        """The requested page."""
        assert self._sample.page_number is not None
        sent = SentRequest(method=method, url=url, params=params or {}, json=json)
        return Response(200, {}, self._answer(self._sample.page_number(sent)), url, 1.0)


def steps(path: str) -> Path:
    """The steps of a written path: `data.menus[0].items`."""
    return tuple(int(index) if index else name for name, index in _STEP.findall(path))


def _at(item: Any, path: Path) -> Any:
    for step in path:
        item = item[step]
    return item


def leaves(item: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """(path, value) of every value that is no object or list, and of empty ones."""
    yield from ((at, value) for at, value in parts(item, path) if not (isinstance(value, dict | list) and value))


def parts(item: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """(path, value) of everything inside, also of objects and lists."""
    entries: Any = ()
    if isinstance(item, dict):
        entries = item.items()
    elif isinstance(item, list):
        entries = enumerate(item)
    for key, value in entries:
        yield (*path, key), value
        yield from parts(value, (*path, key))


def shape(path: Path) -> Path:
    """The path without positions in lists."""
    return tuple(0 if isinstance(step, int) else step for step in path)


def written(path: Path) -> str:
    """The path as text: `variants[0].price`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def replaced(item: Any, path: Path, value: Any) -> Any:
    """A copy with another value at the path."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    copy: Any = dict(item) if isinstance(item, dict) else list(item)
    copy[step] = replaced(copy[step], rest, value)
    return copy


def removed(item: Any, path: Path) -> Any:
    """A copy without what is at the path."""
    if len(path) > 1:
        return replaced(item, path[:1], removed(item[path[0]], path[1:]))
    copy: Any = dict(item) if isinstance(item, dict) else list(item)
    del copy[path[0]]
    return copy


def with_raw(item: Any, path: Path, raw: bytes) -> bytes:
    """The JSON of a copy with raw bytes at the path, which need not be JSON."""
    return msgspec.json.encode(replaced(item, path, _PLACE)).replace(_QUOTED, raw)
