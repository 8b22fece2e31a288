"""Validate and normalize the location of a proxy's exit IP. Pure, except for the system's time zone data.

States of the United States and provinces of Canada by their postal codes, countries by ISO 3166-1 alpha-2, time zones by their IANA
names.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Self

from msgspec import Struct, structs

from menuwatch.core.errors import InvalidField, Refused
from menuwatch.geo import states
from menuwatch.geo.zones import is_zone
from menuwatch.proxies.model import NewProxy

_COUNTRIES = """
AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC CD CF CG
CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL
GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA
LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP
NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV
SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW
"""
COUNTRIES = frozenset(_COUNTRIES.split())


_ZONES = {
    ("US", None): """
    Adak Anchorage Boise Chicago Denver Detroit Indiana Juneau Kentucky Los_Angeles Menominee Metlakatla New_York Nome North_Dakota
    Phoenix Sitka Yakutat""",
    ("CA", None): """
    Atikokan Cambridge_Bay Creston Dawson Dawson_Creek Edmonton Fort_Nelson Glace_Bay Goose_Bay Halifax Inuvik Iqaluit Moncton Nipigon
    Pangnirtung Rainy_River Rankin_Inlet Regina Resolute St_Johns Swift_Current Thunder_Bay Toronto Vancouver Whitehorse Winnipeg
    Yellowknife""",
    ("CA", "QC"): "Blanc-Sablon Montreal",
    ("PR", None): "Puerto_Rico",
}
_REGIONS = {f"America/{name}": region for region, names in _ZONES.items() for name in names.split()}
"""Countries, and where a zone is of one province only, that province; the time zone database's file zone.tab has the list."""


def region_of(time_zone: str | None) -> tuple[str | None, str | None]:
    """Country and state whose clients have that time zone, each None where the zone does not tell: of the United States, Canada and
    Puerto Rico only, whose languages are known."""
    area, _, name = (time_zone or "").partition("/")
    if area in ("US", "Canada"):
        return ("US" if area == "US" else "CA"), None
    return (
        ("US", "HI")
        if time_zone == "Pacific/Honolulu"
        else _REGIONS.get(f"{area}/{name.partition('/')[0]}", (None, None))
    )


class Location(Struct, frozen=True, kw_only=True):
    """None: unknown."""

    city: str | None = None
    state: str | None = None
    country: str | None = None
    timezone: str | None = None

    @classmethod
    def check(
        cls,
        *,
        city: str | None = None,
        state: str | None = None,
        country: str | None = None,
        timezone: str | None = None,
    ) -> tuple[Self, dict[str, str]]:
        """The location in normal form, without invalid values, and what is wrong with those by field."""
        problems: dict[str, str] = {}

        def valid(field: str, read: Callable[[], str | None]) -> str | None:
            try:
                return read()
            except Refused as error:
                problems[field] = str(error)
                return None

        code = valid("country", lambda: country_code(country))
        location = cls(
            country=code,
            state=valid("state", lambda: state_code(state, code)),
            timezone=valid("timezone", lambda: time_zone(timezone)),
            city=valid("city", lambda: _city(city)),
        )
        return location, problems

    @classmethod
    def parse(cls, **texts: str | None) -> Self:
        """The location in normal form. Raises InvalidField."""
        location, problems = cls.check(**texts)
        for field, message in problems.items():
            raise InvalidField(field, message)
        return location

    def of(self, proxy: NewProxy) -> NewProxy:
        """The proxy with the known values of this location."""
        return dataclasses.replace(proxy, **{name: value for name, value in structs.asdict(self).items() if value})


LOCATION = Location.__struct_fields__


def _city(text: str | None) -> str | None:
    if text and len(text) > 200:
        raise Refused("the name of a city has at most 200 characters")
    return text or None


def state_code(text: str | None, country: str | None) -> str | None:
    """The state's code in capitals; raises Refused if the country (as returned by `country_code`) has no such state."""
    code = _two_letters(text, "state", "AZ")
    known = {"US": states.NAMES, "CA": states.PROVINCES, None: states.CODES}.get(country)
    if code is not None and known is not None and code not in known:
        of = {"US": "the United States", "CA": "Canada"}.get(country or "", "the United States or Canada")
        raise Refused(
            f"{code} is not a state or province of {of}: use the postal code, for example {'ON' if country == 'CA' else 'AZ'}"
        )
    return code


def country_code(text: str | None) -> str | None:
    """The country's code in capitals; raises Refused for one that does not exist."""
    code = _two_letters(text, "country", "US")
    if code is not None and code not in COUNTRIES:
        hint = ": the United Kingdom is GB" if code == "UK" else ""
        raise Refused(f"{code} is not a country code (ISO 3166-1, for example US){hint}")
    return code


def time_zone(text: str | None) -> str | None:
    """The time zone; raises Refused for one that does not exist."""
    if not text:
        return None
    if not is_zone(text):
        raise Refused(f"unknown time zone {_short(text)}: use an IANA name such as America/Phoenix")
    return text


def _two_letters(text: str | None, name: str, example: str) -> str | None:
    if not text:
        return None
    if len(text) != 2 or not text.isascii() or not text.isalpha():
        raise Refused(f"the {name} of a proxy must be two letters, e.g. {example}: got {_short(text)}")
    return text.upper()


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:39] + "…")
