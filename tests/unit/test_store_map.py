"""The map of stores. Expected distances are worked out by the haversine formula, and compared with the scale of the drawing."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from menuwatch.site.store_map import HEIGHT, WIDTH, MapStore, StoreMap, draw


def store(number: int, latitude: float | None, longitude: float | None, name: str = "Green Leaf") -> MapStore:
    return MapStore(number, name, latitude, longitude, None)


def miles(a: tuple[float, float], b: tuple[float, float]) -> float:
    south, north = math.radians(a[0]), math.radians(b[0])
    h = (
        math.sin((north - south) / 2) ** 2
        + math.cos(south) * math.cos(north) * math.sin(math.radians(b[1] - a[1]) / 2) ** 2
    )
    return 2 * 3958.8 * math.asin(math.sqrt(h))


def drawn(*points: tuple[float, float], here: tuple[float, float] | None = None) -> StoreMap:
    made = draw([store(n, *point) for n, point in enumerate(points)], here)
    assert made is not None
    return made


def test_north_is_up_and_the_scale_is_true() -> None:
    albuquerque, santa_fe, gallup = (35.0844, -106.6504), (35.6870, -105.9378), (35.5281, -108.7426)
    made = drawn(albuquerque, santa_fe, gallup)
    a, s, g = ((mark.x, mark.y) for mark in made.marks)
    assert g[0] < a[0] < s[0]
    assert s[1] < g[1] < a[1]
    pixels, text = made.scale
    per_pixel = float(text.removesuffix(" mi")) / pixels
    for one, other, real in ((a, s, miles(albuquerque, santa_fe)), (a, g, miles(albuquerque, gallup))):
        assert math.isclose(math.dist(one, other) * per_pixel, real, rel_tol=0.02)


def test_the_scale_of_a_map_in_canada_is_in_kilometers() -> None:
    toronto, barrie = (43.6532, -79.3832), (44.3894, -79.6903)
    made = draw([store(1, *toronto), store(2, *barrie)], state="ON")
    assert made is not None
    pixels, text = made.scale
    a, b = ((mark.x, mark.y) for mark in made.marks)
    km = math.dist(a, b) * float(text.removesuffix(" km")) / pixels
    assert math.isclose(km, miles(toronto, barrie) * 1.609344, rel_tol=0.02)


def test_stores_at_one_place_are_one_mark_and_those_without_a_position_are_counted() -> None:
    stores = [store(1, 35.0, -106.0), store(2, 35.00001, -106.0), store(3, 36.0, -107.0), store(4, None, None)]
    made = draw(stores, None)
    assert made is not None
    assert [[one.id for one in mark.stores] for mark in made.marks] == [[1, 2], [3]]
    assert (made.has_groups, made.missing) == (True, 1)


def test_without_two_points_there_is_no_map() -> None:
    assert draw([]) is None
    assert draw([store(1, 35.0, -106.0)]) is None
    assert draw([store(1, None, None)], (35.0, -106.0)) is None
    assert draw([store(1, 35.0, -106.0)], (35.1, -106.0)) is not None


def test_towns_are_named() -> None:
    made = draw([store(1, 35.7, -105.0, "A"), store(2, 34.2, -107.0, "B")])
    assert made is not None
    assert {"Albuquerque", "Santa Fe"} <= {town.text for town in made.towns}


_points = st.tuples(st.floats(25, 65), st.floats(-140, -55))


@given(st.lists(_points, min_size=2, max_size=60), st.none() | _points)
def test_everything_is_inside_and_no_mark_covers_another(
    points: list[tuple[float, float]], here: tuple[float, float] | None
) -> None:
    made = drawn(*points, here=here)
    assert sum(len(mark.stores) for mark in made.marks) == len(points)
    spots = [(mark.x, mark.y) for mark in made.marks]
    for x, y in [*spots, *([made.here] if made.here else [])]:
        assert 24 <= x <= WIDTH - 24
        assert 24 <= y <= HEIGHT - 24
    assert all(math.dist(a, b) >= 31 for n, a in enumerate(spots) for b in spots[:n])
