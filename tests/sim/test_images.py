"""The simulated image host: real pictures of three formats, always the same, and what real hosts send besides."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.images.transform import make_original
from menuwatch.images.vips import InvalidImage, TooLarge, sniff
from menuwatch.sim.http import Request
from menuwatch.sim.images import bomb, image_response
from menuwatch.sim.market import Market
from menuwatch.sim.pictures.lettering import printable, written
from menuwatch.sim.pictures.render import SIZE, draw, encode
from menuwatch.sim.pictures.subject import (
    BRAND_NAMES,
    CATEGORIES,
    STRAIN_TYPES,
    UNITS,
    Subject,
    View,
    digits_of,
    logo_subject,
    subject_of,
)
from menuwatch.sim.words import BRANDS, NOUNS, STRAINS
from tests.images.image_factory import decoded

PICTURES = int(os.environ.get("PICTURES", "150"))
SUBJECTS = st.sampled_from(CATEGORIES).flatmap(
    lambda category: st.builds(
        Subject,
        st.just(category),
        st.sampled_from(NOUNS[category]),
        st.sampled_from(View),
        st.none() | st.sampled_from(BRAND_NAMES),
        st.lists(st.sampled_from(STRAINS), max_size=2).map(tuple),
        st.sampled_from(STRAIN_TYPES),
        st.sampled_from(UNITS),
        st.integers(0, 2**14 - 1),
        st.integers(0, 2**63 - 1),
    )
)


@given(SUBJECTS)
def test_a_url_says_what_its_picture_shows(subject: Subject) -> None:
    digits = digits_of(subject)
    assert len(digits) == 32
    for url in (f"/dutchie-images/{digits}", f"/a/{digits}.jpg", f"/images/{digits}/large?w=10"):
        assert subject_of(url) == subject


@given(st.text(max_size=60) | st.integers(0, 2**128 - 1).map(lambda n: f"/dutchie-images/{n:032x}"))
def test_any_other_url_shows_a_product_of_no_brand(path: str) -> None:
    subject = subject_of(path)
    assert subject == subject_of(path)
    assert (subject.brand, subject.noun in NOUNS[subject.category]) == (None, True)


@pytest.mark.parametrize("category", CATEGORIES)
def test_every_kind_of_product_has_a_picture_of_its_own(category: str) -> None:
    for noun in NOUNS[category]:
        subject = Subject(
            category, noun, brand="Kiln", strains=("Blue Fern",), strain_type="Indica", unit="g", amount=350
        )
        views = [encode(replace(subject, view=view), "png") for view in View if view is not View.LOGO]
        assert len(set(views)) == 3
        assert views[0] == encode(subject, "png"), "the same every time"
        for view in views:
            image = decoded(view)
            assert (image.width, image.height) == (SIZE, SIZE)
            assert image.deviate() > 15, "it is not blank"
        assert encode(replace(subject, brand="Sundial"), "png") != views[0], "its brand is on it"
        if category != "Accessories":
            assert encode(replace(subject, strains=("Kettle Kush",)), "png") != views[0], "its name is on the label"


def test_formats_show_the_same() -> None:
    subject = Subject("Tincture", "Drops", brand="Marrow")
    made = {kind: encode(subject, kind) for kind in ("png", "webp", "jpeg")}
    assert {name: sniff(data) for name, data in made.items()} == {name: name for name in made}
    png, webp, jpeg = (decoded(made[kind]) for kind in ("png", "webp", "jpeg"))
    assert (png - webp).abs().avg() < 3
    assert (png - jpeg).abs().avg() < 3


def test_all_that_a_label_says_can_be_written() -> None:
    for text in (
        *STRAINS,
        *(name for name, _ in BRANDS),
        *(n for nouns in NOUNS.values() for n in nouns),
        "0.3g",
        "1000mg",
    ):
        assert written(text, 0, 0, size=10, width=100, colour="#000000"), text
    assert printable("Señor  Βeta*") == "SENOR BETA"
    assert len({encode(logo_subject(name), "png") for name in BRAND_NAMES}) == len(BRAND_NAMES)


def test_the_picture_of_a_product_shows_it() -> None:
    market = Market(seed=4, stores=3, products=120)
    seen: Counter[str] = Counter()
    for store in market.stores:
        for state in market.menu(store, 0):
            product = state.product
            subject = subject_of(product.image)
            if not product.image or "-stock-" in product.image:
                assert subject.brand is None
                continue
            assert subject.category == product.category
            assert subject.brand == (product.brand.name if product.brand is not None else None)
            assert all(strain in product.name for strain in subject.strains)
            seen["strain"] += bool(subject.strains)
            seen["size"] += bool(subject.size)
            assert b"<path" in draw(subject).svg(100)
    assert min(seen.values()) > 80


def test_the_bomb_is_one() -> None:
    assert len(bomb()) < 30_000
    with pytest.raises(TooLarge):
        make_original(bomb())


def test_what_the_host_has() -> None:
    """Each picture is drawn and read again, which takes 20 ms: `make proofs` looks at ten times as many."""
    kinds: Counter[str] = Counter()
    for number in range(PICTURES):
        answer = image_response(Request("GET", f"/dutchie-images/{number:032x}", {}, {}, b"", 0))
        if answer.status == 404:
            kinds["missing"] += 1
            continue
        try:
            made = make_original(answer.body)
        except InvalidImage as error:
            assert "ETag" not in answer.headers
            kinds[type(error).__name__] += 1
        else:
            assert "ETag" in answer.headers
            kinds[made.source_format] += 1
            kinds["called a text"] += answer.content_type == "text/plain"
    assert min(kinds[name] for name in ("png", "jpeg", "webp")) > PICTURES / 8
    assert kinds["jpeg"] > PICTURES * 0.4
    assert min(kinds[name] for name in ("missing", "NotAnImage", "Damaged", "TooLarge", "called a text")) >= max(
        1, PICTURES // 300
    )
