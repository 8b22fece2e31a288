"""States and provinces by their codes."""

from __future__ import annotations

import pytest

from menuwatch.core.errors import Refused
from menuwatch.geo.states import CODES, code_in_america, parse_state


def test_parse_state() -> None:
    assert (parse_state(" az "), parse_state("ON"), len(CODES)) == ("AZ", "ON", 69)
    for wrong in ("ZZ", "", "Arizona", "A"):
        with pytest.raises(Refused, match="as AZ or ON"):
            parse_state(wrong)


def test_a_name_gets_its_code_and_not_the_list_of_all() -> None:
    for name, code in (("Arizona", "AZ"), ("new jersey", "NJ"), ("Ontario", "ON")):
        with pytest.raises(Refused, match=f"did you mean {code}") as refused:
            parse_state(name)
        assert len(str(refused.value)) < 120


@pytest.mark.parametrize(
    ("text", "code"),
    [("New Mexico", "NM"), ("NEW  mexico ", "NM"), ("nm", "NM"), ("N.M.", "NM"), ("ON", "ON"), ("ontario", "ON"), ("Québec", "QC"),
     ("D.C.", "DC"), ("US Virgin Islands", "VI"), ("Bavaria", None), ("", None), (".", None), ("ZZ", None)],
)  # fmt: skip
def test_a_code_or_a_name_in_any_case_is_a_state(text: str, code: str | None) -> None:
    assert code_in_america(text) == code
