"""Map of stores as server-side SVG: their positions, the larger towns, and a scale; nothing is loaded from elsewhere. Pure.

The projection is equirectangular around the middle: over a few hundred kilometers it is true to a percent or two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec import Struct

from menuwatch.geo import units
from menuwatch.geo.postcodes import Place, Town, towns_between
from menuwatch.storefront.page_queries import ListedStore, Offer

WIDTH, HEIGHT = 480, 340
_MARGIN = 44
_APART = 32
"""Stores nearer to each other than this, in pixels of the drawing, are one mark: a finger hits a mark of that size."""
_LETTER, _LINE = 8.6, 18
"""Size of a letter at the largest font that the style sheet sets."""
_LONGEST = 22
_MOST_NAMES, _MOST_TOWNS = 6, 6
_METERS_PER_DEGREE = 111_190
_LEAST_METERS = 1_600
"""Smallest width of the drawing."""
_SCALES = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


class MapStore(NamedTuple):
    """A store on the map; `meters` is its distance from the chosen place."""

    id: int
    name: str
    latitude: float | None
    longitude: float | None
    meters: int | None


class Label(NamedTuple):
    """A text beside its mark; `anchor` is its side that is at `x`."""

    x: float
    y: float
    text: str
    anchor: str


class StoreMark(Struct, frozen=True, kw_only=True):
    """One store, or several that are at nearly the same place; `label` only where there is room for it."""

    x: float
    y: float
    stores: Sequence[MapStore]
    label: Label | None
    latitude: float
    longitude: float


class StoreMap(Struct, frozen=True, kw_only=True):
    """The drawing. `here` is the chosen place; `scale` the length of the bar in pixels and what it stands for; `missing` counts stores
    without a known position."""

    width: int
    height: int
    marks: Sequence[StoreMark]
    towns: Sequence[Label]
    here: tuple[float, float] | None
    scale: tuple[float, str]
    missing: int

    @property
    def has_groups(self) -> bool:
        """Whether a mark stands for several stores."""
        return any(len(mark.stores) > 1 for mark in self.marks)


def draw_stores(
    stores: Sequence[ListedStore], here: Place | None = None, *, state: str | None = None
) -> StoreMap | None:
    """The map of a list of stores around a place or in a state."""
    shown = [MapStore(one.id, one.name, one.latitude, one.longitude, one.meters) for one in stores]
    return draw(shown, here.point, state=here.state) if here else draw(shown, state=state)


def draw_offers(offers: Sequence[Offer], here: Place) -> StoreMap | None:
    """The map of the stores near a place that offer a product, nearest first, each location once."""
    near = sorted((one for one in offers if one.meters is not None), key=lambda one: (one.meters, one.store_id))
    places: dict[int, Offer] = {}
    for offer in near:
        places.setdefault(offer.location_key, offer)
    stores = [MapStore(one.store_id, one.store, one.latitude, one.longitude, one.meters) for one in places.values()]
    return draw(stores, here.point, state=here.state)


def draw(
    stores: Sequence[MapStore], here: tuple[float, float] | None = None, *, state: str | None = None
) -> StoreMap | None:
    """The map of stores, the most important first; None if fewer than two points are known. The scale is in the unit of `state`."""
    placed = [(s, s.latitude, s.longitude) for s in stores if s.latitude is not None and s.longitude is not None]
    points = [(lat, lon) for _, lat, lon in placed] + ([here] if here else [])
    if not placed or len(points) < 2:
        return None
    south, north = min(p[0] for p in points), max(p[0] for p in points)
    west, east = min(p[1] for p in points), max(p[1] for p in points)
    middle = ((south + north) / 2, (west + east) / 2)
    narrow = max(math.cos(math.radians(middle[0])), 0.05)
    # Degrees of latitude per pixel.
    degrees = max(
        (north - south) / (HEIGHT - 2 * _MARGIN),
        (east - west) * narrow / (WIDTH - 2 * _MARGIN),
        _LEAST_METERS / _METERS_PER_DEGREE / (WIDTH - 2 * _MARGIN),
    )

    def at(lat: float, lon: float) -> tuple[float, float]:
        return (
            round(WIDTH / 2 + (lon - middle[1]) * narrow / degrees, 1),
            round(HEIGHT / 2 - (lat - middle[0]) / degrees, 1),
        )

    groups: list[tuple[tuple[float, float], tuple[float, float], list[MapStore]]] = []
    for store, lat, lon in placed:
        spot = at(lat, lon)
        group = next((g for g in groups if math.dist(g[0], spot) < _APART), None)
        if group is None:
            groups.append((spot, (lat, lon), [store]))
        else:
            group[2].append(store)
    centre = at(*here) if here else None
    room = _Room([spot for spot, _, _ in groups], centre)
    marks = []
    for spot, (lat, lon), some in groups:
        label = room.label(spot, _short(some[0].name), 14) if len(some) == 1 and room.names < _MOST_NAMES else None
        room.names += label is not None
        marks.append(StoreMark(x=spot[0], y=spot[1], stores=some, label=label, latitude=lat, longitude=lon))
    reach = (WIDTH / 2 * degrees / narrow, HEIGHT / 2 * degrees)
    towns = towns_between(middle[0] - reach[1], middle[0] + reach[1], middle[1] - reach[0], middle[1] + reach[0])
    return StoreMap(
        width=WIDTH,
        height=HEIGHT,
        marks=marks,
        towns=_towns(towns, room, at),
        here=centre,
        scale=_scale(degrees * _METERS_PER_DEGREE, state),
        missing=len(stores) - len(placed),
    )


class _Room:
    """Where texts may stand without covering marks or each other."""

    def __init__(self, spots: Sequence[tuple[float, float]], centre: tuple[float, float] | None) -> None:
        self.names = 0
        self._taken = [(x - 12, y - 12, x + 12, y + 12) for x, y in spots]
        if centre:
            self._taken.append((centre[0] - 10, centre[1] - 10, centre[0] + 10, centre[1] + 10))
        self._taken.append((0, HEIGHT - 34, 150, HEIGHT))  # the scale

    def label(self, spot: tuple[float, float], text: str, beside: float) -> Label | None:
        """The text at the right or left of a mark; None if there is no room."""
        length = len(text) * _LETTER
        for x, anchor, left in (
            (spot[0] + beside, "start", spot[0] + beside),
            (spot[0] - beside, "end", spot[0] - beside - length),
        ):
            if self._take(left, spot[1], length):
                return Label(round(x, 1), round(spot[1] + 5, 1), text, anchor)
        return None

    def centred(self, spot: tuple[float, float], text: str) -> Label | None:
        """The text in the middle of a spot; None if there is no room."""
        length = len(text) * _LETTER
        if self._take(spot[0] - length / 2, spot[1], length):
            return Label(spot[0], round(spot[1] + 5, 1), text, "middle")
        return None

    def _take(self, left: float, middle: float, length: float) -> bool:
        box = (left, middle - _LINE / 2, left + length, middle + _LINE / 2)
        if box[0] < 4 or box[2] > WIDTH - 4 or box[1] < 4 or box[3] > HEIGHT - 4:
            return False
        if any(box[0] < t[2] and t[0] < box[2] and box[1] < t[3] and t[1] < box[3] for t in self._taken):
            return False
        self._taken.append(box)
        return True


def _towns(towns: Sequence[Town], room: _Room, at: Callable[[float, float], tuple[float, float]]) -> list[Label]:
    labels: list[Label] = []
    for town in towns:
        if len(labels) == _MOST_TOWNS:
            break
        label = room.centred(at(town.latitude, town.longitude), town.name)
        if label is not None:
            labels.append(label)
    return labels


def _scale(meters_per_pixel: float, state: str | None) -> tuple[float, str]:
    """The longest bar of a round length that is at most a quarter of the width, in the unit that people of that state use."""
    meters, unit = (1000, "km") if units.is_metric(state) else (units.METERS_PER_MILE, "mi")
    pixels = [length * meters / meters_per_pixel for length in _SCALES]
    at = max((n for n, one in enumerate(pixels) if one <= WIDTH / 4), default=0)
    return round(pixels[at], 1), f"{_SCALES[at]:g} {unit}"


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1].rstrip() + "…"
