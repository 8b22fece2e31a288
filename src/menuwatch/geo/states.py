"""The states, districts and territories of the United States, and the provinces of Canada: their two-letter codes and their names."""

from __future__ import annotations

import unicodedata

from menuwatch.core.errors import Refused

NAMES = {
    "AL": "Alabama", "AK": "Alaska", "AZ": "Arizona", "AR": "Arkansas", "CA": "California", "CO": "Colorado",
    "CT": "Connecticut", "DE": "Delaware", "DC": "District of Columbia", "FL": "Florida", "GA": "Georgia",
    "HI": "Hawaii", "ID": "Idaho", "IL": "Illinois", "IN": "Indiana", "IA": "Iowa", "KS": "Kansas", "KY": "Kentucky",
    "LA": "Louisiana", "ME": "Maine", "MD": "Maryland", "MA": "Massachusetts", "MI": "Michigan", "MN": "Minnesota",
    "MS": "Mississippi", "MO": "Missouri", "MT": "Montana", "NE": "Nebraska", "NV": "Nevada", "NH": "New Hampshire",
    "NJ": "New Jersey", "NM": "New Mexico", "NY": "New York", "NC": "North Carolina", "ND": "North Dakota",
    "OH": "Ohio", "OK": "Oklahoma", "OR": "Oregon", "PA": "Pennsylvania", "RI": "Rhode Island",
    "SC": "South Carolina", "SD": "South Dakota", "TN": "Tennessee", "TX": "Texas", "UT": "Utah", "VT": "Vermont",
    "VA": "Virginia", "WA": "Washington", "WV": "West Virginia", "WI": "Wisconsin", "WY": "Wyoming",
    "AS": "American Samoa", "GU": "Guam", "MP": "Northern Mariana Islands", "PR": "Puerto Rico", "VI": "Virgin Islands",
}  # fmt: skip
"""Code to name."""

_CODES = {name.casefold(): code for code, name in NAMES.items()}

PROVINCES: dict[str, str] = {
    "AB": "Alberta", "BC": "British Columbia", "MB": "Manitoba", "NB": "New Brunswick", "NL": "Newfoundland and Labrador",
    "NS": "Nova Scotia", "NT": "Northwest Territories", "NU": "Nunavut", "ON": "Ontario", "PE": "Prince Edward Island",
    "QC": "Quebec", "SK": "Saskatchewan", "YT": "Yukon",
}  # fmt: skip
"""Provinces and territories of Canada."""

CODES = frozenset(NAMES) | frozenset(PROVINCES)


def name_of(code: str) -> str:
    """`Arizona` for "AZ", `Ontario` for "ON"; any other code unchanged."""
    return NAMES.get(code) or PROVINCES.get(code, code)


def no_store_in(scope: str) -> str:
    """Notice of an empty list or report on `scope`, such as the name of a state, of which no store is known."""
    return f"No known stores: {scope}."


_ALL_CODES = _CODES | {name.casefold(): code for code, name in PROVINCES.items()} | {"us virgin islands": "VI"}


def code_of(text: str) -> str | None:
    """`AZ` for "AZ", "az" and "Arizona"; None if it is not a state."""
    wanted = " ".join(text.split())
    return wanted.upper() if wanted.upper() in NAMES else _CODES.get(wanted.casefold())


def code_in_america(text: str) -> str | None:
    """The code of a state of the United States or a province of Canada: `NM` for "NM", "nm", "N.M.", "New Mexico", `QC` for "Québec".

    None for what is neither.
    """
    plain = unicodedata.normalize("NFKD", text)
    wanted = " ".join("".join(char for char in plain if char != "." and not unicodedata.combining(char)).split())
    return wanted.upper() if wanted.upper() in CODES else _ALL_CODES.get(wanted.casefold())


def parse_state(text: str) -> str:
    """The code of a state or province given by its two letters, in any case; raises Refused."""
    code = text.strip().upper()
    if code not in CODES:
        meant = code_in_america(text)
        hint = f"; did you mean {meant}?" if meant else ""
        raise Refused(f"unknown state {text[:60]!r}: use two letters such as AZ or ON{hint}")
    return code
