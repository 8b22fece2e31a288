"""What is accepted as an image, and what is stored of it."""

from __future__ import annotations

import threading
import time
import zlib
from contextlib import suppress
from hashlib import sha256
from random import Random

import pytest

from menuwatch.images import limits, vips
from menuwatch.images.transform import make_original
from menuwatch.images.vips import Damaged, InvalidImage, NotAnImage, TooLarge, UnknownFormat, sniff
from tests.images.image_factory import decoded, encoded, gif_bomb, halves, noise, plain, png_bomb, png_of

SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"><image href="file:///etc/passwd"/></svg>'


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp", ".gif", ".avif"])
def test_five_formats_become_webp_at_full_resolution(suffix: str) -> None:
    source = encoded(halves(321, 123), suffix)
    made = make_original(source)
    assert made.source_format == {".jpg": "jpeg"}.get(suffix, suffix[1:])
    assert (made.width, made.height, made.source_bytes) == (321, 123, len(source))
    assert made.sha256 == sha256(source).digest()
    assert sniff(made.data) == "webp"
    image = decoded(made.data)
    assert (image.width, image.height) == (321, 123)
    left, right = image(40, 60), image(280, 60)
    assert left[0] > 200 > 60 > left[2]
    assert right[2] > 200 > 60 > right[0]


def test_the_colour_is_the_average() -> None:
    assert make_original(encoded(plain(50, 50, (10, 200, 30)), ".png")).colour in {
        "#0ac81e",
        "#09c81e",
        "#0bc81e",
        "#0ac81d",
    }


def test_a_picture_that_lies_on_its_side_is_turned_and_loses_its_metadata() -> None:
    image = halves(200, 100).copy()
    image.set_type(pyvips_int(), "orientation", 6)  # to be turned by 90 degrees clockwise
    image.set_type(pyvips_str(), "exif-ifd0-Artist", "somebody")
    made = make_original(encoded(image, ".jpg"))
    assert (made.width, made.height) == (100, 200)
    assert b"somebody" not in made.data
    assert b"EXIF" not in made.data
    top = decoded(made.data)(50, 20)
    assert top[0] > 200


def pyvips_int() -> int:
    import pyvips

    return int(pyvips.GValue.gint_type)


def pyvips_str() -> int:
    import pyvips

    return int(pyvips.GValue.gstr_type)


def test_a_field_whose_name_is_no_text_harms_nobody() -> None:
    image = halves(16, 16).copy()
    image.set_type(pyvips_str(), "exif-ifd0-Artist", "x")
    source = encoded(image, ".avif", keep="exif")
    poisoned = source.replace(
        b"Exif\0", b"E\xffif\0", 1
    )  # the type of a metadata item, of which libvips makes a field's name
    with pytest.raises(UnicodeDecodeError):
        decoded(poisoned).get_fields()
    made = make_original(poisoned)
    assert (made.source_format, made.width, made.height) == ("avif", 16, 16)


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp", ".gif", ".avif"])
def test_whatever_is_in_a_picture_it_is_made_or_refused(suffix: str) -> None:
    source, rng = encoded(halves(16, 16), suffix), Random(7)
    for _ in range(60):
        mutated = bytearray(source)
        for _ in range(rng.randrange(1, 4)):
            mutated[rng.randrange(len(mutated))] = rng.choice((0, 0xFF, rng.randrange(256)))
        with suppress(InvalidImage):
            make_original(bytes(mutated))


def test_an_error_that_is_not_of_libvips_is_the_pictures_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("x")

    monkeypatch.setattr(vips.lib().Image, "thumbnail_buffer", broken, raising=False)
    with pytest.raises(Damaged, match="ZeroDivisionError: x"):
        make_original(encoded(halves(16, 16), ".png"))


def test_transparency_is_kept() -> None:
    image = plain(20, 20, (255, 0, 0, 0))
    assert decoded(make_original(encoded(image, ".png")).data)(5, 5)[3] == 0


def test_odd_colours_become_srgb() -> None:
    grey = make_original(encoded(plain(20, 20, (99,)).copy(interpretation="b-w"), ".png"))
    assert decoded(grey.data).bands == 3
    deep = (plain(20, 20).cast("ushort") * 257).copy(interpretation="rgb16")
    assert decoded(make_original(encoded(deep, ".png")).data)(3, 3)[0] == pytest.approx(200, abs=4)
    cmyk = plain(20, 20, (0, 255, 255, 0)).copy(interpretation="cmyk")
    red = decoded(make_original(encoded(cmyk, ".jpg")).data)(3, 3)
    assert red[0] > 150 > 100 > red[2]


def test_a_png_bomb_is_refused_before_it_is_decoded() -> None:
    bomb = png_bomb()
    assert len(bomb) < 130_000
    started = time.monotonic()
    with pytest.raises(TooLarge, match=r"30000 x 30000 pixels are 900 million; at most 50 million"):
        make_original(bomb)
    assert time.monotonic() - started < 0.5
    assert TooLarge.final


def test_a_picture_of_one_long_line_is_refused_by_its_side() -> None:
    """libvips holds several whole lines at once: 49 million pixels in one line took 1.1 GB."""
    line = png_of(49_000_000, 1, zlib.compress(bytes(1 + 49_000_000 // 8)), depth=1, colour=0)
    with pytest.raises(TooLarge, match=r"49000000 x 1 pixels; at most 32768 on a side"):
        make_original(line)
    with pytest.raises(TooLarge):
        vips.header(encoded(plain(2, limits.MAX_SOURCE_SIDE + 1), ".png"))
    assert vips.header(encoded(plain(2, limits.MAX_SOURCE_SIDE), ".png")).height == limits.MAX_SOURCE_SIDE


def test_frames_count_as_well() -> None:
    with pytest.raises(TooLarge, match=r"1000 x 1000 x 60 frames pixels are 60 million"):
        make_original(gif_bomb(1000, 1000, 60))


def test_of_a_moving_picture_the_first_frame_is_kept() -> None:
    made = make_original(gif_bomb(100, 100, 10))
    assert (made.width, made.height) == (100, 100)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (SVG, "an SVG"),
        (b"<?xml version='1.0'?>\n<!-- x --><svg/>", "an SVG"),
        (b"<!doctype html><html></html>", "a web page"),
        (b'{"error": "not found"}', "JSON"),
        (b"", "an empty response"),
        (b"BM" + bytes(60), "a BMP"),
        (b"II*\0" + bytes(60), "a TIFF"),
        (b"%PDF-1.7\n", "a PDF"),
        (b"\0\0\0\x18ftypheic\0\0\0\0heicmif1", "an unknown image format"),
        (b"vips" + bytes(100), "an unknown image format"),
        (b"P6\n10 10\n255\n" + bytes(300), "an unknown image format"),
        (b"#?RADIANCE\n", "an unknown image format"),
    ],
)
def test_everything_else_is_refused_by_what_it_is(data: bytes, said: str) -> None:
    kind = NotAnImage if said in ("a web page", "JSON", "an empty response") else UnknownFormat
    with pytest.raises(kind, match=said):
        make_original(data)
    assert kind.final is (kind is UnknownFormat)


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp", ".gif", ".avif"])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.95])
def test_a_picture_that_is_cut_short_is_damaged(suffix: str, share: float) -> None:
    whole = encoded(noise(300, 300), suffix)
    with pytest.raises(InvalidImage) as refused:
        make_original(whole[: int(len(whole) * share)])
    assert isinstance(refused.value, Damaged)
    assert not refused.value.final


def test_a_header_without_a_picture() -> None:
    for start in (
        b"\xff\xd8\xff",
        b"\x89PNG\r\n\x1a\n",
        b"RIFF\x10\0\0\0WEBP",
        b"GIF89a",
        b"\0\0\0\x1cftypavif\0\0\0\0avif",
    ):
        with pytest.raises(Damaged):
            make_original(start)
    with pytest.raises(Damaged):
        make_original(png_of(10, 10, b"not zlib at all"))


def test_too_many_bytes() -> None:
    with pytest.raises(TooLarge, match=r"30,000,001 bytes"):
        make_original(b"\xff\xd8\xff" + bytes(limits.MAX_DOWNLOAD_BYTES - 2))


def test_loaders_that_are_not_needed_are_locked() -> None:
    lib = vips.lib()
    for data in (SVG, b"BM" + bytes(60), b"II*\0" + bytes(60), b"P6\n1 1\n255\nabc", b"%PDF-1.4"):
        with pytest.raises(lib.Error):
            lib.Image.new_from_buffer(data, "")
    with pytest.raises(lib.Error):
        lib.Image.svgload_buffer(SVG)


def test_it_decodes_in_many_threads() -> None:
    source = encoded(noise(200, 200), ".jpg")
    found: list[bytes] = []
    threads = [threading.Thread(target=lambda: found.append(make_original(source).data)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_a_picture_that_is_too_long_for_webp_is_made_to_fit() -> None:
    made = make_original(encoded(plain(20_000, 10), ".png"))
    assert made.width == limits.MAX_SIDE
    assert made.height == 8
