"""Parameters and what the Accept header does, one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.images.accept import names_images, negotiate
from menuwatch.images.params import NAMES, BadParameters, Params, parse


def one(text: str) -> Params:
    return parse([tuple(part.split("=", 1)) for part in text.split("&")])  # type: ignore[misc]


def test_all_of_them() -> None:
    found = one("w=1&h=4000&q=100&fit=outside&blur=0.3&gray=1&format=avif")
    assert found == Params(w=1, h=4000, q=100, fit="outside", blur=0.3, gray=True, format="avif")
    assert one("blur=1000").blur == 1000
    assert one("format=jpg").format == "jpeg"
    assert one("gray=0") == Params() == parse([])
    assert Params().changes_nothing
    assert one("format=png").changes_nothing
    assert not one("q=80").changes_nothing


@pytest.mark.parametrize(
    ("text", "name", "allowed"),
    [
        *((f"{side}={value}", side, "a whole number from 1 to 4000") for side in "wh" for value in
          ("0", "-1", "4001", "1.5", "", "abc", "1e3", " 5", "+5", "0x10", "٣", "NaN", "9" * 400, "10\0", "5\n")),
        *((f"q={value}", "q", "a whole number from 1 to 100") for value in ("0", "101", "-5", "80.5", "high")),
        *((f"fit={value}", "fit", "one of cover, contain, fill, inside, outside") for value in ("foo", "", "COVER", "crop")),
        *((f"blur={value}", "blur", "a number from 0.3 to 1000") for value in
          ("0", "0.29", "1000.1", "-1", "nan", "inf", "1e2", "", ".5", "1.", "x")),
        *((f"gray={value}", "gray", "one of 1, 0") for value in ("true", "2", "")),
        *((f"format={value}", "format", "one of webp, jpeg, png, avif") for value in ("gif", "svg", "", "WEBP", "jxl")),
        ("width=5", "width", "unknown; the parameters are w, h, q, fit, blur, gray, format"),
        ("w=5&w=5", "w", "is given more than once"),
    ],
)  # fmt: skip
def test_what_means_nothing_names_the_parameter_and_what_is_allowed(text: str, name: str, allowed: str) -> None:
    with pytest.raises(BadParameters) as refused:
        one(text)
    ((wrong, said),) = refused.value.errors
    assert wrong == name
    assert said.partition(", not '")[0].endswith(allowed)


def test_everything_that_is_wrong_is_named_at_once() -> None:
    with pytest.raises(BadParameters) as refused:
        one("w=0&q=101&fit=foo")
    assert [name for name, _ in refused.value.errors] == ["w", "q", "fit"]


@given(st.lists(st.tuples(st.sampled_from([*NAMES, "x"]), st.text(max_size=8)), max_size=5))
def test_nothing_else_is_ever_raised(pairs: list[tuple[str, str]]) -> None:
    try:
        found = parse(pairs)
    except BadParameters:
        return
    assert one(found.canonical()) == found if found.canonical() else found == Params()


def test_what_makes_no_difference_is_left_out() -> None:
    same = {one(text).made_as("webp") for text in ("w=200", "w=200&fit=inside", "q=80&w=200", "w=200&gray=0")}
    assert len(same) == 1
    assert one("w=5&q=10").made_as("png") == one("w=5&q=90").made_as("png")
    assert one("w=5&h=5&fit=fill").made_as("png") != one("w=5&h=5").made_as("png")


CHROME = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"


@pytest.mark.parametrize(
    ("header", "format"),
    [
        (None, "webp"),
        ("", "webp"),
        ("*/*", "webp"),
        ("image/*", "webp"),
        (CHROME, "avif"),
        ("image/webp,*/*", "webp"),
        ("image/avif;q=0,image/webp,*/*", "webp"),
        ("image/avif;q=0.5,image/webp;q=0.9", "webp"),
        ("image/webp;q=0,*/*", "jpeg"),
        ("image/webp;q=0.0, image/jpeg;q=0, */*;q=0.1", "png"),
        ("image/png", "png"),
        ("image/jpeg", "jpeg"),
        ("image/jpg", "jpeg"),
        ("image/png,image/jpeg", "jpeg"),
        ("image/png;q=1,image/jpeg;q=0.2", "png"),
        ("IMAGE/AVIF;Q=1", "avif"),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8", "avif"),
        ("text/html", "jpeg"),
        ("image/gif", "jpeg"),
        ("image/webp;q=0", "jpeg"),
        ("*/*;q=0", "jpeg"),
        ("image/*;q=0, */*", "jpeg"),
        ("image/webp;q=nonsense", "jpeg"),
        ("image/webp;q=nan", "jpeg"),
        (",;,=;q=,,", "jpeg"),
    ],
)
def test_the_format_by_the_accept_header(header: str | None, format: str) -> None:  # noqa: A002
    assert negotiate(header) == format


def test_a_picture_that_stays_as_it_is_is_sent_as_it_is() -> None:
    assert negotiate(CHROME, unchanged=True) == "webp"
    assert negotiate("image/avif", unchanged=True) == "avif"
    assert negotiate("image/webp;q=0,image/avif", unchanged=True) == "avif"


def test_who_asks_for_pictures() -> None:
    assert names_images(CHROME)
    assert names_images("image/*")
    assert not names_images("*/*")
    assert not names_images(None)
    assert not names_images("application/json")
    assert not names_images("image/webp;q=0, image/*;q=0")


@given(st.text(max_size=200))
def test_any_header_has_an_answer(header: str) -> None:
    assert negotiate(header) in ("webp", "jpeg", "png", "avif")
