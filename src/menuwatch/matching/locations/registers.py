"""Reads licence registers: CSV with a header, JSON lines, or a JSON list, of any state. Pure.

Columns may come in any order and have the names that the states use (New York, Maryland, Massachusetts and Colorado were read);
others are ignored. Zips that a spreadsheet made numbers of ("1852.0") and dates in four spellings are read.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from typing import Annotated, Any

import msgspec

from menuwatch.core.errors import Refused
from menuwatch.core.shapes import doc
from menuwatch.geo import postcodes, states
from menuwatch.matching.locations.address import parse_zip
from menuwatch.matching.locations.names import fold

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "number": ("number", "license_number", "licence_number", "license_no", "license", "licence"),
    "holder": ("holder", "business_legal_name", "entity_name", "legal_name", "licensee", "business_name"),
    "trade_name": ("trade_name", "dba", "business_dba_name", "public_name", "location_name"),
    "kind": ("kind", "license_type", "licence_type", "type"),
    "status": ("status", "approved_license_type", "license_status", "licence_status"),
    "operating": ("operating", "is_operational"),
    "active": ("is_active",),
    "address": ("address", "street", "address_street", "establishment_address", "premise_street_address"),
    "address_2": ("address_2", "establishment_address_2"),
    "city": ("city", "address_city", "premise_city"),
    "state": ("state", "address_state", "establishment_state", "premise_state"),
    "zipcode": ("zipcode", "zip", "zip_code", "address_zip", "establishment_zipcode", "premise_zip_code"),
    "latitude": ("latitude", "lat", "premise_latitude"),
    "longitude": ("longitude", "lng", "lon", "premise_longitude"),
    "phone": ("phone", "business_phone", "telephone"),
    "issued_on": ("issued_on", "issued_date", "issue_date", "license_start"),
    "expires_on": ("expires_on", "expiration_date", "expiry_date", "license_expiry"),
}
"""Columns of the generic table, with the names under which registers have them; the first one that is filled counts."""

LARGEST = 50_000_000
"""Bytes of an unpacked register."""
_LONGEST = 500
_EMPTY = frozenset({"", "n/a", "na", "none", "null", "nan", "-"})
_NUMBER = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ./_-]*")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class RegisterRow(msgspec.Struct, frozen=True, kw_only=True):
    """A licence as a register writes it."""

    line: int
    number: str
    holder: str
    trade_name: str | None = None
    kind: str | None = None
    status: str | None = None
    operating: bool | None = None
    address: str | None = None
    city: str | None = None
    zipcode: str | None = None
    latitude: float | None = None
    longitude: float | None = None
    phone: str | None = None
    issued_on: date | None = None
    expires_on: date | None = None


class RejectedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line that is not a licence."""

    line: Annotated[int, doc("Line of the file, from 1.")]
    reason: Annotated[str, doc("What is wrong with it.")]


def number_key(number: str) -> str:
    """A licence number without its punctuation: "OCM-RETL-25-000306", "ocmretl25000306" are one."""
    return re.sub(r"[^0-9A-Z]", "", number.upper())


def text_of(content: bytes) -> str:
    """The text of a file, also of one packed with gzip. Raises Refused."""
    if content[:2] == b"\x1f\x8b":
        try:
            with gzip.open(io.BytesIO(content)) as packed:
                content = packed.read(LARGEST + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise Refused(f"the file cannot be unpacked: {error}") from None
    if len(content) > LARGEST:
        raise Refused(f"the register is larger than {LARGEST // 1_000_000} MB")
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return content.decode("utf-16", errors="replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace")


def read(text: str, state: str) -> tuple[list[RegisterRow], list[RejectedLine], list[int]]:
    """(licences, lines that are none, lines repeated by a later one) of a register of `state`. Raises Refused for input that is not
    a register, and for one of another state.
    """
    latest: dict[str, RegisterRow] = {}
    rejected: list[RejectedLine] = []
    repeated: list[int] = []
    elsewhere: dict[str, int] = {}
    total = 0
    for line, values in _lines(text):
        total += 1
        if isinstance(values, str):
            rejected.append(RejectedLine(line=line, reason=values))
            continue
        there = states.code_in_america(values.get("state", ""))
        if there and there != state:
            elsewhere[there] = elsewhere.get(there, 0) + 1
        try:
            row = _row(line, values)
        except Refused as error:
            rejected.append(RejectedLine(line=line, reason=str(error)))
            continue
        if (before := latest.pop(number_key(row.number), None)) is not None:
            repeated.append(before.line)
        latest[number_key(row.number)] = row
    if not total:
        raise Refused("the register is empty: give a CSV with a header, or JSON lines")
    other, count = max(elsewhere.items(), key=lambda item: item[1], default=("", 0))
    if count > total / 2:
        raise Refused(f"{count:,} of {total:,} licences are of {other}, not of {state}: use --state {other}")
    return list(latest.values()), rejected, repeated


def _lines(text: str) -> Iterator[tuple[int, dict[str, str] | str]]:
    """The values of each line by the names of COLUMNS, or why there are none."""
    start = text.lstrip()[:1]
    if start == "[":
        try:
            items = msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            raise Refused(f"the register is not JSON: {error}") from None
        for at, item in enumerate(items, 1):
            yield at, _named(_flat(item)) if isinstance(item, dict) else "it is not a JSON object"
    elif start == "{":
        for at, line in enumerate(text.splitlines(), 1):
            if line.strip():
                try:
                    item = msgspec.json.decode(line)
                except msgspec.DecodeError as error:
                    yield at, f"it is not JSON: {error}"
                else:
                    yield at, _named(_flat(item)) if isinstance(item, dict) else "it is not a JSON object"
    else:
        yield from _table(text)


def _table(text: str) -> Iterator[tuple[int, dict[str, str] | str]]:
    head = text.lstrip("\r\n").split("\n", 1)[0]
    delimiter = max(",;\t", key=head.count)
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    header: list[str] | None = None
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if header is None:
                header = cells
                if "number" not in _named(dict.fromkeys(header, "x")):
                    known = ", ".join(COLUMNS["number"][:3])
                    raise Refused(f"the table has no column for the licence number: name one of its columns {known}")
                continue
            if len(cells) > len(header) and any(cells[len(header) :]):
                yield (
                    reader.line_num,
                    f"it has {len(cells)} values for {len(header)} columns: quote values with {delimiter!r}",
                )
            else:
                yield reader.line_num, _named(dict(zip(header, cells, strict=False)))
    except csv.Error as error:
        raise Refused(f"line {reader.line_num} is not CSV: {error}") from None


def _flat(item: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for name, value in item.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}_")
        elif value is not None and not isinstance(value, list):
            flat[prefix + name] = str(value)
    return flat


def _named(values: Mapping[str, str]) -> dict[str, str]:
    """By the names of COLUMNS; what says nothing ("N/A") is left out."""
    cells: dict[str, str] = {}
    for name, value in values.items():
        key = re.sub(r"[\s.-]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.strip())).lower()
        value = " ".join(value.split())
        if value.lower() not in _EMPTY:
            cells.setdefault(key, value)
    return {name: cells[alias] for name, aliases in COLUMNS.items() for alias in reversed(aliases) if alias in cells}


def _row(line: int, values: Mapping[str, str]) -> RegisterRow:
    for name, value in values.items():
        if len(value) > _LONGEST:
            raise Refused(f"{name} has {len(value):,} characters, at most {_LONGEST} are allowed")
        if _CONTROL.search(value):
            raise Refused(f"{name} contains control characters")
    number, holder = values.get("number", ""), values.get("holder") or values.get("trade_name", "")
    if not number:
        raise Refused("the licence number is missing")
    if not _NUMBER.fullmatch(number):
        raise Refused(f"{number!r} is not a licence number: use letters, digits and dashes")
    if not holder:
        raise Refused(f"licence {number} has no holder")
    address, city, zipcode = _place(values)
    position = _position(values)
    active, operating = _flag(values, "active"), _flag(values, "operating")
    status = values.get("status") or (None if active is None else "active" if active else "inactive")
    if operating is None and "commence" in (status or "").lower():
        operating = True  # Massachusetts' word for it
    return RegisterRow(
        line=line,
        number=number.upper(),
        holder=holder,
        trade_name=values.get("trade_name"),
        kind=values.get("kind"),
        status=status,
        operating=operating if active is not False else False,
        address=address,
        city=city,
        zipcode=zipcode,
        latitude=position[0] if position else None,
        longitude=position[1] if position else None,
        phone=values.get("phone"),
        issued_on=_date(values, "issued_on"),
        expires_on=_date(values, "expires_on"),
    )


def _place(values: Mapping[str, str]) -> tuple[str | None, str | None, str | None]:
    """Address, city and zip; of an address in one string ("25 Liberty Rd. Sykesville Maryland 21784") the parts."""
    address = ", ".join(values[name] for name in ("address", "address_2") if name in values)
    city, zipcode = values.get("city"), parse_zip(values.get("zipcode")) or None
    match = re.fullmatch(r"(.+?)[\s,]+(\d{5})(?:-\d{4})?", address)
    if city is None and zipcode is None and match is not None:
        address, zipcode = match[1], match[2]
        words = address.split()
        size = next((n for n in (2, 1) if len(words) > n and states.code_in_america(" ".join(words[-n:]))), 0)
        address = " ".join(words[: len(words) - size])
        place = postcodes.postcode(zipcode)
        if place is not None and fold(address).endswith(" " + fold(place.city)):
            address, city = address[: -len(place.city)].rstrip(" ,"), place.city
    return address or None, city, zipcode


def _position(values: Mapping[str, str]) -> tuple[float, float] | None:
    try:
        latitude, longitude = float(values["latitude"]), float(values["longitude"])
    except (KeyError, ValueError):
        return None
    on_earth = -90 <= latitude <= 90 and -180 <= longitude <= 180 and (latitude, longitude) != (0, 0)
    return (latitude, longitude) if on_earth else None


def _flag(values: Mapping[str, str], name: str) -> bool | None:
    value = values.get(name, "").lower()
    return True if value in ("true", "yes", "y", "1") else False if value in ("false", "no", "n", "0") else None


def _date(values: Mapping[str, str], name: str) -> date | None:
    """ "2027-03-24T00:00:00.000", "3/24/2027", "Mon Sep 16 2024 04:00:00 GMT-0400 (…)" or "24-Mar-2027"; raises Refused for others."""
    text = values.get(name)
    if text is None:
        return None
    tries = (
        (text[:10], "%Y-%m-%d"),
        (text.split()[0], "%m/%d/%Y"),
        (text[:15], "%a %b %d %Y"),
        (text[:11], "%d-%b-%Y"),
    )
    for part, form in tries:
        try:
            return datetime.strptime(part, form).date()  # noqa: DTZ007 - a day has no zone
        except ValueError:
            continue
    raise Refused(f"{name} {text[:40]!r} is not a date: write 2027-03-24")
