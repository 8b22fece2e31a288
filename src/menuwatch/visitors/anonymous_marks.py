"""A visit as it lives in memory, and the marks that stand for it as long as the day's salt does. Pure."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import NamedTuple

from msgspec import Struct

LONGEST_PAGE = 200
"""Characters of a page's name that are kept."""
LONGEST_AGENT = 512
MARK_BYTES = 16


class Kind(StrEnum):
    """Kinds of pages of the public site."""

    HOME = "home"
    SEARCH = "search"
    PRODUCT = "product"
    STORE = "store"
    BRAND = "brand"
    OTHER = "other"


NAMED = (Kind.PRODUCT, Kind.STORE, Kind.BRAND)
"""Kinds whose pages are counted one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One view of one page. Whose it is is in no representation, so that no log can show it; it is never stored."""

    at: datetime
    kind: Kind
    page: str
    """The page within its kind (a slug); `""` for kinds with a single page."""
    address: IPv4Address | IPv6Address = field(repr=False)
    agent: str = field(repr=False)

    @property
    def day(self) -> date:
        """The day that it counts for, in UTC."""
        return self.at.astimezone(UTC).date()


class Marks(NamedTuple):
    """Hashes that stand for a visitor: of the day, of the kind of page, of the page. None reveals another."""

    day: bytes
    kind: bytes
    page: bytes | None


class Where(NamedTuple):
    """A place by name; `""` for what is not known."""

    country: str = ""
    region: str = ""
    city: str = ""


class Counted(Struct, frozen=True, kw_only=True):
    """What is left of a visit when it is written down."""

    day: date
    kind: Kind
    page: str
    where: Where
    marks: Marks


def marks(salt: bytes, visit: Visit) -> Marks:
    """The marks of a visit. An IPv6 client is identified by the first 64 bits: privacy extensions change the rest."""
    address = visit.address
    who = f"{address}" if address.version == 4 else f"{IPv6Network((address, 64), strict=False)}"

    def mark(what: str) -> bytes:
        text = "\n".join((visit.day.isoformat(), who, what, visit.agent))
        return hmac.digest(salt, text.encode("utf-8", "replace"), hashlib.sha256)[:MARK_BYTES]

    page = mark(f"page {visit.kind} {visit.page}") if visit.kind in NAMED and visit.page else None
    return Marks(mark("day"), mark(f"kind {visit.kind}"), page)


def named(page: str) -> str:
    """A page's name as it can be stored: printable, and not longer than it may be."""
    return "".join(char for char in page if char.isprintable())[:LONGEST_PAGE]
