"""The simulated image host: real pictures of three formats, always the same, and what real hosts send besides."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from menuwatch.images.transform import make_original
from menuwatch.images.vips import InvalidImage, TooLarge, sniff
from menuwatch.sim.http import Request
from menuwatch.sim.images import SIZE, bomb, encode, image_response
from tests.images.image_factory import decoded

SEED = bytes([200, 30, 60, 20, 90, 220, 0])  # slope 1: the edge is at the row's number


@settings(deadline=None)  # six pictures each time: on a machine with other work that takes a while
@given(st.binary(min_size=7, max_size=16))
def test_each_format_can_be_read_and_shows_the_same(seed: bytes) -> None:
    made = {kind: encode(seed, kind) for kind in ("png", "webp", "jpeg")}
    assert {name: sniff(data) for name, data in made.items()} == {name: name for name in made}
    images = {name: decoded(data) for name, data in made.items()}
    assert {(image.width, image.height) for image in images.values()} == {(SIZE, SIZE)}
    assert (images["png"] - images["webp"]).abs().max() == 0
    slope = seed[6] % 7 + 1
    for y in range(0, SIZE, 8):
        edge = min(SIZE, (y * slope) % (SIZE + 1))
        for x in range(0, SIZE, 8):
            colour = seed[:3] if x < edge else seed[3:6]
            assert images["png"](x, y) == list(colour)
            assert images["jpeg"](x + 3, y + 3) == pytest.approx(list(colour), abs=5)


def test_the_bomb_is_one() -> None:
    assert len(bomb()) < 30_000
    with pytest.raises(TooLarge):
        make_original(bomb())


def test_what_the_host_has() -> None:
    kinds: Counter[str] = Counter()
    for number in range(1500):
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
    assert min(kinds[name] for name in ("png", "jpeg", "webp")) > 250
    assert min(kinds[name] for name in ("missing", "NotAnImage", "Damaged", "TooLarge", "called a text")) > 3
