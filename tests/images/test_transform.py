"""Every parameter, looked at in the result itself."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.images import vips
from menuwatch.images.limits import MAX_PIXELS, MAX_SIDE
from menuwatch.images.params import BadParameters, Fit, Format, Params
from menuwatch.images.transform import blurred, layout, make_original, placeholder, transform
from menuwatch.images.vips import Damaged, TooLarge, UnknownFormat, sniff
from tests.images.image_factory import decoded, encoded, halves, noise, plain, png_bomb

WIDE = encoded(halves(1200, 600), ".webp", Q=95)


@pytest.mark.parametrize(
    ("params", "size"),
    [
        (Params(), (1200, 600)),
        (Params(w=200), (200, 100)),
        (Params(h=200), (400, 200)),
        (Params(w=200, h=200), (200, 200)),
        (Params(w=200, h=200, fit="cover"), (200, 200)),
        (Params(w=200, h=200, fit="contain"), (200, 200)),
        (Params(w=200, h=200, fit="fill"), (200, 200)),
        (Params(w=200, h=200, fit="inside"), (200, 100)),
        (Params(w=200, h=200, fit="outside"), (400, 200)),
        (Params(w=1, h=1), (1, 1)),
        (Params(w=1), (1, 1)),
        (Params(w=2400), (2400, 1200)),
        (Params(w=333, h=77, fit="inside"), (154, 77)),
    ],
)
@pytest.mark.parametrize("target", ["webp", "jpeg", "png"])
def test_sizes(params: Params, size: tuple[int, int], target: Format) -> None:
    data = transform(WIDE, params, target)
    assert sniff(data) == target
    image = decoded(data)
    assert (image.width, image.height) == size


def test_avif() -> None:
    data = transform(WIDE, Params(w=64), "avif")
    assert sniff(data) == "avif"
    assert (decoded(data).width, decoded(data).height) == (64, 32)


def test_fits_show_what_they_should() -> None:
    cover = decoded(transform(WIDE, Params(w=100, h=100), "png"))
    assert cover(10, 50)[0] > 200
    assert cover(90, 50)[2] > 200, "cut around the centre: both halves are there"
    contain = decoded(transform(WIDE, Params(w=100, h=100, fit="contain"), "png"))
    assert contain(50, 5)[3] == 0, "the margin is clear"
    assert contain(10, 50)[0] > 200
    white = decoded(transform(WIDE, Params(w=100, h=100, fit="contain"), "jpeg"))
    assert min(white(50, 5)) > 240
    fill = decoded(transform(WIDE, Params(w=100, h=100, fit="fill"), "png"))
    assert fill(45, 50)[0] > 200
    assert fill(55, 50)[2] > 200


def test_quality() -> None:
    source = encoded(noise(400, 400), ".png")
    sizes = [len(transform(source, Params(w=300, q=q), "webp")) for q in (5, 50, 95)]
    assert sizes[0] < sizes[1] < sizes[2]
    assert transform(source, Params(w=300), "jpeg") == transform(source, Params(w=300, q=80), "jpeg")


def test_an_avif_is_smaller_than_the_webp_and_as_close_to_the_original() -> None:
    lib = vips.lib()
    soft = lib.Image.perlin(600, 600, cell_size=100, uchar=True, seed=1).bandjoin(
        [lib.Image.perlin(600, 600, cell_size=100, uchar=True, seed=seed) for seed in (2, 3)]
    )
    image = (soft + lib.Image.gaussnoise(600, 600, mean=0, sigma=6, seed=7)).cast("uchar").copy(interpretation="srgb")
    source = encoded(image, ".png")
    small = lib.Image.thumbnail_buffer(source, 400).copy_memory().cast("float")
    webp, avif = (transform(source, Params(w=400), target) for target in ("webp", "avif"))
    assert len(avif) < 0.7 * len(webp)
    errors = [((decoded(result).cast("float") - small) ** 2).avg() for result in (webp, avif)]
    assert errors[1] < 1.2 * errors[0]


def test_gray() -> None:
    for target in ("webp", "jpeg", "png"):
        pixel = decoded(transform(WIDE, Params(w=100, gray=True), target))(10, 10)  # type: ignore[arg-type]
        assert max(pixel[:3]) - min(pixel[:3]) < 6


def test_blur() -> None:
    source = encoded(noise(300, 300), ".png")
    spread = [decoded(transform(source, Params(w=200, blur=sigma), "png")).deviate() for sigma in (0.3, 2.0, 8.0)]
    assert spread[0] > 2 * spread[1] > 4 * spread[2]
    edge = decoded(transform(WIDE, Params(w=200, blur=10.0), "png"))
    assert 60 < edge(100, 50)[0] < 200, "the edge is soft"
    assert edge(5, 50)[0] > 230


@pytest.mark.parametrize("sigma", [13.0, 40.0])
def test_a_wide_blur_looks_as_the_plain_one(sigma: float) -> None:
    image = noise(300, 200)
    image = image.insert(plain(80, 90), 100, 50)
    quick, exact = blurred(image, sigma), image.gaussblur(sigma)
    assert (quick.width, quick.height) == (300, 200)
    assert (quick.cast("float") - exact.cast("float")).abs().avg() < 3


def test_the_widest_blur_of_the_largest_picture_takes_no_age() -> None:
    started = time.monotonic()
    data = transform(WIDE, Params(w=4000, h=4000, fit="fill", blur=1000.0), "jpeg")
    assert time.monotonic() - started < 15
    assert decoded(data).width == 4000


@pytest.mark.parametrize("size", [(1, 1), (1, 50), (50, 1), (2, 3)])
@pytest.mark.parametrize("sigma", [0.3, 5.0, 1000.0])
def test_a_blur_of_next_to_nothing(size: tuple[int, int], sigma: float) -> None:
    image = decoded(transform(encoded(plain(*size), ".png"), Params(blur=sigma), "png"))
    assert (image.width, image.height) == size


def test_transparency_becomes_white_in_jpeg() -> None:
    source = encoded(plain(50, 50, (255, 0, 0, 0)), ".png")
    assert min(decoded(transform(source, Params(w=20), "jpeg"))(5, 5)) > 240
    assert decoded(transform(source, Params(w=20), "webp"))(5, 5)[3] == 0
    assert decoded(transform(source, Params(gray=True, w=20), "png"))(5, 5)[-1] == 0


FITS: list[Fit] = ["cover", "contain", "fill", "inside", "outside"]
sides = st.integers(1, 20_000)
asked = st.none() | st.integers(1, 4000)


@given(sides, sides, asked, asked, st.sampled_from(FITS))
def test_geometry(width: int, height: int, w: int | None, h: int | None, fit: Fit) -> None:
    try:
        plan = layout(width, height, Params(w=w, h=h, fit=fit))
    except BadParameters:
        return
    got = plan.canvas_width, plan.canvas_height
    assert min(*got, plan.width, plan.height) >= 1
    if w is None and h is None:
        assert got == (width, height)
        return
    assert max(got) <= MAX_SIDE
    assert plan.width * plan.height <= MAX_PIXELS
    if w is None or h is None:
        assert got[0] == w or got[1] == h
        return
    if fit in ("cover", "contain", "fill"):
        assert got == (w, h)
    if fit == "cover":
        assert plan.width >= w
        assert plan.height >= h
    if fit in ("contain", "inside"):
        assert plan.width <= w
        assert plan.height <= h
    if fit in ("inside", "outside"):
        assert got[0] == w or got[1] == h
    if fit == "outside":
        assert got[0] >= w
        assert got[1] >= h


@pytest.mark.parametrize(
    ("params", "name"),
    [
        (Params(w=4000), "w"),
        (Params(h=4000, format="png"), None),
        (Params(w=4000, h=4000, fit="outside"), "fit"),
        (Params(w=4000, h=4000, fit="cover"), "fit"),
        (Params(w=4000, h=4000, fit="fill"), None),
        (Params(w=4000, h=4000, fit="inside"), None),
    ],
)
def test_a_result_that_would_be_too_large_names_the_parameter(params: Params, name: str | None) -> None:
    thin = encoded(plain(10, 8000), ".png")
    if name is None:
        assert transform(thin, params, "jpeg")
        return
    with pytest.raises(BadParameters, match=f"{name}: the result would have"):
        transform(thin, params, "jpeg")


def test_what_cannot_be_shown() -> None:
    with pytest.raises(TooLarge):
        transform(png_bomb(), Params(w=100), "webp")
    with pytest.raises(UnknownFormat):
        transform(b"<svg/>" + bytes(100), Params(w=100), "webp")
    for suffix in (".jpg", ".png", ".webp", ".gif", ".avif"):
        cut = encoded(noise(300, 300), suffix)
        for params in (Params(), Params(w=10), Params(w=299)):
            with pytest.raises(Damaged):
                transform(cut[: len(cut) * 2 // 5], params, "webp")


def test_sources_of_any_kind_lying_on_their_side() -> None:
    import pyvips

    image = halves(200, 100).copy()
    image.set_type(pyvips.GValue.gint_type, "orientation", 6)
    turned = decoded(transform(encoded(image, ".jpg"), Params(w=50), "png"))
    assert (turned.width, turned.height) == (50, 100)
    same = decoded(transform(encoded(image, ".jpg"), Params(), "png"))
    assert (same.width, same.height) == (100, 200)


def test_the_stored_picture_of_a_photograph_stays_good() -> None:
    source = noise(200, 200).gaussblur(2)
    kept = decoded(make_original(encoded(source, ".png")).data)
    assert (kept.cast("float") - source.cast("float")).abs().avg() < 4


@pytest.mark.parametrize(
    ("params", "size"),
    [
        (Params(), (400, 400)),
        (Params(w=10), (10, 10)),
        (Params(h=77), (77, 77)),
        (Params(w=300, h=20), (300, 20)),
        (Params(w=1, h=1), (1, 1)),
    ],
)
def test_placeholder(params: Params, size: tuple[int, int]) -> None:
    for target in ("webp", "jpeg", "png", "avif"):
        data = placeholder(params, target)  # type: ignore[arg-type]
        assert sniff(data) == target
    image = decoded(placeholder(params, "png"))
    assert (image.width, image.height) == size
