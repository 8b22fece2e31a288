"""Store matching on recorded data: `python bench/store_matching.py [DATA]`; `measure()` gives the figures to bench/matching.py.

- New Mexico: 311 Weedmaps listings against the licensees of the sales file. Truth: tests/matching/nm_store_truth.csv, judged by
  reading every pair that shares an address, a name or a house number and town. Precision counts links, recall listings with a licence.
- Colorado: shops by the second spelling of their address in the register, against the licences by the first one, where both have the
  same house number (about one in eight is another place). Truth: the licence number, or the house number of a shop with two licences.
- Minneapolis: the first and the last look at the shops as two platforms, and all looks one after the other, as a platform that renames
  and moves shops. Truth: Weedmaps' id.
- Registers: lines of the four files, and what became of them.
- Time for a whole run over 20,000 menus and licences.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from menuwatch.matching.locations import address, names, registers
from menuwatch.matching.locations.compare import Record
from menuwatch.matching.locations.kinds import is_retail
from menuwatch.matching.locations.link import Key, Known, Linking, link
from menuwatch.matching.locations.numbers import assign

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data" / "market"
TRUTH = ROOT / "tests" / "matching" / "nm_store_truth.csv"
_NO_SHOPS = ("MANUFACT", "PRODUCTION-", "PROCESSING")
"""In the names of licensees: the sales file has no kinds."""


def record(key: Key, row: dict[str, Any], **more: Any) -> Record:
    """A record as matching/locations/engine.py makes it of a row."""
    place = address.parse(row.get("address"), row.get("city"), row.get("state"), row.get("zipcode"))
    texts = [row[name] for name in ("name", "trade_name", "holder") if row.get(name)]
    parsed = (names.parse(text, place.city.split(), place.street) for text in texts)
    position = (float(row["latitude"]), float(row["longitude"])) if row.get("latitude") else None
    return Record(
        key, place, tuple(name for name in parsed if name.words), phone=address.parse_phone(row.get("phone")), position=position,
        address_text=row.get("address") or "", label=texts[0] if texts else "", **more,
    )  # fmt: skip


def licence_id(licensee: str, street: str, city: str, zipcode: str) -> str:
    """How the truth names a licensee at an address: the sales file has no licence numbers."""
    return hashlib.sha256("|".join((licensee, street, city, zipcode)).encode()).hexdigest()[:12]


def new_mexico(data: Path = DATA, sales: str = "nm_sales_dev.csv.gz", truth: Path = TRUTH) -> dict[str, Any]:
    """Listings against licensees."""
    records = []
    for line in (data / "nm_weedmaps_listings.jsonl").read_text().splitlines():
        row = json.loads(line)
        row |= {"zipcode": row["zip_code"], "phone": row["phone_number"]}
        records.append(record(("menu", row["id"]), row, platform="weedmaps"))
    with gzip.open(data / sales, "rt") as file:
        licensees = {(r["licensee"], r["address"], r["city"], r["zip"]) for r in csv.DictReader(file)}
    ids: dict[Key, str] = {}
    for at, (holder, street, city, zipcode) in enumerate(sorted(licensees), 1):
        if not any(word in holder for word in _NO_SHOPS):
            ids["licence", at] = licence_id(holder, street, city, zipcode)
            row = {"holder": holder, "address": street, "city": city, "state": "NM", "zipcode": zipcode}
            records.append(record(("licence", at), row, trade_named=False))
    verdicts = {(int(r["listing"]), r["licence"]): r["verdict"] for r in csv.DictReader(truth.open())}
    linked = [(menu[1], ids[licence]) for menu, licence in _links(link(records))]
    licensed = {
        listing for (listing, licence), verdict in verdicts.items() if verdict == "same" and licence in ids.values()
    }
    right = [pair for pair in linked if verdicts.get(pair) == "same"]
    wrong = [pair for pair in linked if verdicts.get(pair, "different") == "different"]
    return {
        "listings": 311, "licensees": len(licensees), "listings_with_licence": len(licensed), "links": len(linked),
        "right": len(right), "wrong": wrong, "precision": _share(len(right), len(right) + len(wrong)),
        "recall": _share(len({listing for listing, _ in right} & licensed), len(licensed)),
        "missed": sorted(licensed - {listing for listing, _ in right}),
    }  # fmt: skip


def colorado(data: Path = DATA) -> dict[str, Any]:
    """Two spellings of one register's addresses."""
    with gzip.open(data / "licences_co.csv.gz", "rt") as file:
        stores = [row for row in csv.DictReader(file) if row["license_type"] == "Stores"]
    rows = [row for row in stores if _house(row["Street"]) and _same_house(row)]
    records, numbers = [], {}
    for at, row in enumerate(rows, 1):
        place = {"city": row["premise_city"], "state": "CO", "zipcode": row["premise_zip_code"]}
        menu = {
            "name": row["business_dba_name"],
            "address": row["premise_street_address"],
            "phone": row["business_phone"],
            **place,
        }
        records.append(record(("menu", at), menu, platform=f"p{at}"))  # two licences of one shop are two menus of it
        records.append(
            record(
                ("licence", at),
                {"holder": row["business_legal_name"], "address": row["Street"], **place},
                trade_named=False,
            )
        )
        numbers[at] = row["license_number"]
    linked = list(_links(link(records)))
    # A shop with two licences has two menus here: either licence at the same address is right.
    place_of = {r.key: (frozenset(r.address.numbers), r.address.zipcode) for r in records}
    right = sum(
        numbers[menu[1]] == numbers[licence[1]] or place_of[menu] == place_of[licence] for menu, licence in linked
    )
    found = {menu[1] for menu, licence in linked if numbers[menu[1]] == numbers[licence[1]]}
    return {
        "shops": len(rows),
        "links": len(linked),
        "precision": _share(right, len(linked)),
        "recall": _share(len(found), len(rows)),
    }


def _same_house(row: dict[str, str]) -> bool:
    return _house(row["Street"]) == _house(row["premise_street_address"])


def _house(text: str) -> str:
    return text.split()[0] if text[:1].isdigit() else ""


def _looks(data: Path) -> Iterator[list[dict[str, Any]]]:
    with gzip.open(data / "minneapolis_stores_rows.jsonl.gz", "rt") as file:
        rows = [json.loads(line) for line in file]
    with gzip.open(data / "minneapolis_stores_looks.jsonl.gz", "rt") as file:
        for line in file:
            yield [
                {**rows[i], "state": "MN", "latitude": rows[i]["lat"], "longitude": rows[i]["lng"]}
                for i in json.loads(line)["rows"]
            ]


def minneapolis(data: Path = DATA) -> dict[str, Any]:
    """Shops over time, and the first and last look as two platforms."""
    looks = list(_looks(data))
    known = Known()
    number, kept, changed_numbers, addresses, spellings = 0, 0, 0, defaultdict(set), defaultdict(set)
    for look in looks:
        records = [record(("menu", row["weedmaps_id"]), row, platform="weedmaps") for row in look]
        linking = link(records, known)
        numbering = assign(linking.groups, known)
        before = dict(known.locations)
        placed = dict(before)  # a shop that is absent from a look keeps its location
        for group, found in zip(linking.groups, numbering.numbers, strict=True):
            if found is None:
                found = number = number + 1
            placed |= dict.fromkeys(group, found)
        for row in look:
            key = ("menu", row["weedmaps_id"])
            addresses[key].add(row["address"])
            spellings[key].add(row["name"])
            if key in before:
                kept += before[key] == placed[key]
                changed_numbers += before[key] != placed[key]
        known = Known(placed)
    first = [record(("menu", row["weedmaps_id"]), row, platform="weedmaps") for row in looks[0]]
    offset = 10_000_000
    last = [
        record(("menu", offset + row["weedmaps_id"]), {**row, "phone": None}, platform="dutchie") for row in looks[-1]
    ]
    both = {row["weedmaps_id"] for row in looks[0]} & {row["weedmaps_id"] for row in looks[-1]}
    joined = [
        (a[1], b[1] - offset)
        for group in link([*first, *last]).groups for a in group for b in group if a[1] < offset <= b[1]
    ]  # fmt: skip
    right = sum(a == b for a, b in joined)
    return {
        "looks": len(looks), "shops": len(known.locations), "locations": len(set(known.locations.values())),
        "shops_with_another_address": sum(len(texts) > 1 for texts in addresses.values()),
        "shops_with_another_name": sum(len(texts) > 1 for texts in spellings.values()),
        "numbers_kept": kept, "numbers_changed": changed_numbers,
        "two_platforms": {"shops": len(both), "precision": _share(right, len(joined)), "recall": _share(right, len(both))},
    }  # fmt: skip


def read_registers(data: Path = DATA) -> dict[str, Any]:
    """What became of the lines of each register; `counts` of them all must be those of the file."""
    result = {}
    for name in ("licences_ny.jsonl.gz", "licences_md.jsonl.gz", "licences_ma.csv.gz", "licences_co.csv.gz"):
        state = name[9:11].upper()
        text = registers.text_of((data / name).read_bytes())
        rows, rejected, repeated = registers.read(text, state)
        lines = (
            len(text.splitlines()) if name.endswith(".jsonl.gz") else sum(1 for _ in csv.DictReader(io.StringIO(text)))
        )
        result[state] = {
            "lines": lines, "licences": len(rows), "retail": sum(is_retail(row.kind) for row in rows), "rejected": len(rejected),
            "repeated": len(repeated), "complete": len(rows) + len(rejected) + len(repeated) == lines,
        }  # fmt: skip
    return result


def large(count: int = 20_000) -> dict[str, Any]:
    """A made-up market: three menus and one licence for each shop."""
    records: list[Record] = []
    for shop in range(count // 4):
        row = {
            "name": f"Shop{shop * 7919 % 3001} {'North' if shop % 2 else 'South'}",
            "address": f"{100 + shop % 9000} {'Oak' if shop % 3 else 'Elm'}{shop % 400} St",
            "city": f"Town {shop % 300}", "state": "AZ", "zipcode": f"{85001 + shop % 500}", "phone": f"602{5550000 + shop}",
        }  # fmt: skip
        records += [
            record(("menu", shop * 3 + at), row, platform=name)
            for at, name in enumerate(("dutchie", "jane", "weedmaps"))
        ]
        records.append(record(("licence", shop), row))
    started = time.perf_counter()
    linking = link(records)
    assign(linking.groups, Known())
    return {
        "records": len(records),
        "locations": len(linking.groups),
        "seconds": round(time.perf_counter() - started, 2),
    }


def _links(linking: Linking) -> Iterator[tuple[Key, Key]]:
    """(menu, licence) of one location."""
    for group in linking.groups:
        menus: Sequence[Key] = [key for key in group if key[0] == "menu"]
        yield from ((menu, key) for key in group if key[0] != "menu" for menu in menus)


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def measure(data: Path = DATA) -> dict[str, Any]:
    """All figures."""
    return {
        "new_mexico": new_mexico(data), "colorado": colorado(data), "minneapolis": minneapolis(data),
        "registers": read_registers(data), "large": large(),
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA), indent=1))
