"""Where a proxy stands, as people write it: checked and brought to one form. Pure but for the system's time-zone data.

States of the United States and provinces of Canada by their postal codes, countries by ISO 3166-1 alpha-2, time zones by their IANA
names.
"""

from __future__ import annotations

from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from menuwatch.core.errors import Refused

_STATES = """
AK AL AR AS AZ CA CO CT DC DE FL GA GU HI IA ID IL IN KS KY LA MA MD ME MI MN MO MP MS MT NC ND NE NH NJ NM NV NY OH OK OR PA
PR RI SC SD TN TX UT VA VI VT WA WI WV WY
"""
_PROVINCES = """
AB BC MB NB NL NS NT NU ON PE QC SK YT
"""
_COUNTRIES = """
AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC CD CF CG
CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL
GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA
LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP
NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV
SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW
"""
STATES, PROVINCES, COUNTRIES = (frozenset(text.split()) for text in (_STATES, _PROVINCES, _COUNTRIES))


def state_code(text: str | None, country: str | None) -> str | None:
    """The state's code in capitals; raises Refused for one that the country (as `country_code` gives it) does not have."""
    code = _two_letters(text, "state", "AZ")
    known = {"US": STATES, "CA": PROVINCES, None: STATES | PROVINCES}.get(country)
    if code is not None and known is not None and code not in known:
        of = {"US": "the United States", "CA": "Canada"}.get(country or "", "the United States or Canada")
        raise Refused(
            f"{code} is no state or province of {of}: give its postal code, as {'ON' if country == 'CA' else 'AZ'}"
        )
    return code


def country_code(text: str | None) -> str | None:
    """The country's code in capitals; raises Refused for one that does not exist."""
    code = _two_letters(text, "country", "US")
    if code is not None and code not in COUNTRIES:
        hint = ": the United Kingdom is GB" if code == "UK" else ""
        raise Refused(f"{code} is no country code (ISO 3166-1, as US){hint}")
    return code


def time_zone(text: str | None) -> str | None:
    """The time zone; raises Refused for one that does not exist."""
    if not text:
        return None
    if not _exists(text):
        raise Refused(f"{_short(text)} is no time zone: give its IANA name, as America/Phoenix")
    return text


@lru_cache(maxsize=1024)
def _exists(name: str) -> bool:
    if "/" not in name and name != "UTC":
        return False  # the data also hold files that are no zones, and names of countries
    try:
        ZoneInfo(name)
    except (OSError, ValueError, ZoneInfoNotFoundError):
        return False
    return True


def _two_letters(text: str | None, name: str, example: str) -> str | None:
    if not text:
        return None
    if len(text) != 2 or not text.isascii() or not text.isalpha():
        raise Refused(f"the {name} of a proxy is two letters, as {example}: got {_short(text)}")
    return text.upper()


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:39] + "…")
