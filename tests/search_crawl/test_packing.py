"""Bodies of strangers are plain, gzip or Brotli, told by what they hold."""

from __future__ import annotations

import gzip
import random
from typing import Literal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from menuwatch.search_crawl.providers.packing import Unpackable, unpacked

MOST = 1_000_000
BROTLI: Literal["brotli"] = "brotli"


@settings(deadline=None)
@given(st.text(), st.integers(1, 3000))
def test_html_comes_out_however_it_is_packed(text: str, times: int) -> None:
    page = ("<html>" + text * times).encode("utf-8", "replace")[:MOST]
    assert unpacked(page, MOST) == page
    assert unpacked(gzip.compress(page, 1), MOST) == page
    # What Brotli begins with depends on the size, among other things: it may be any sign of a page.
    assert unpacked(pa.compress(page, codec=BROTLI, asbytes=True), MOST) == page


@pytest.mark.parametrize("size", [70_950, 131_000, 500_000, 17, 1])
def test_sizes(size: int) -> None:
    page = (b"<p>" + b"some page " * (size // 10 + 1))[:size]
    assert unpacked(pa.compress(page, codec=BROTLI, asbytes=True), MOST) == page


def test_what_is_none_of_them() -> None:
    assert unpacked(b"", MOST) == b""
    for page in ("<p>größe</p>".encode("latin-1") * 100, b"<p>\x00\x01</p>", b"\xef\xbb\xbf<p>", b"No page"):
        assert unpacked(page, MOST) == page
    for noise in (
        b"\xff\x00" * 500,
        b"\x1f\x8b\x08 cut off",
        pa.compress(bytes(range(256)) * 9, codec=BROTLI, asbytes=True)[:200],
    ):
        with pytest.raises(Unpackable) as caught:
            unpacked(noise, MOST)
        assert not caught.value.too_large


def test_bombs_stay_packed() -> None:
    bomb = b"\0" * (20 * MOST)
    for packed in (gzip.compress(bomb, 9), pa.compress(bomb, codec=BROTLI, asbytes=True), b"<p>" * MOST):
        with pytest.raises(Unpackable, match="larger than 1,000,000 bytes") as caught:
            unpacked(packed, MOST)
        assert caught.value.too_large


def test_a_body_of_many_members_takes_no_longer_than_one_of_few() -> None:
    """An empty member has 20 bytes, so a body could hold hundreds of thousands of them."""
    empty = gzip.compress(b"")
    with pytest.raises(Unpackable, match="more than 1,000 members") as caught:
        unpacked(empty * (4 * MOST // len(empty)), 16 * MOST)
    assert caught.value.too_large
    pieces = [bytes([65 + n % 26]) * (n * 1000) for n in range(1, 40)]
    packed = b"".join(gzip.compress(piece, 1) + b"\0" * (n % 3) for n, piece in enumerate(pieces))
    assert unpacked(packed, MOST) == b"".join(pieces)
    noise = random.Random(1).randbytes(300_000)  # larger than what is looked at in one go
    assert unpacked(gzip.compress(noise) * 3, MOST) == noise * 3
