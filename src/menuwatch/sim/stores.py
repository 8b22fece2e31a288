"""Making the stores of the market: who they are, where they stand, how they keep their books."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from menuwatch.sim.goods import meteor_id, object_id, slug_of, uuid
from menuwatch.sim.model import Counting, SimStore
from menuwatch.sim.words import CORNERS, DISTRICTS, ONTARIO, PLACES, SHOP_NAMES

MANUAL_SHARE = 0.62
"""Stores that count by hand: 62 % of the recorded Pennsylvanian products carry no point-of-sale data."""
OLD_SHARE = 0.15
"""Stores that answer with the key set of 2023."""
UNCOUNTED_SHARE = 0.3
"""Stores on Weedmaps that say no quantities: of the recorded New Mexican items a quarter to a third have none."""

_FIRST_ON_WEEDMAPS = 100_000
"""Index of the first store there, so that the stores on Dutchie are the same with and without them."""


def make_stores(seed: int, count: int) -> tuple[SimStore, ...]:
    """`count` stores; the first of them are the same however many there are."""
    return tuple(_make(Random(f"{seed}:store:{index}"), seed, index) for index in range(count))


def _make(rng: Random, seed: int, index: int) -> SimStore:
    # The golden ratio spreads the kinds evenly, so that a market of five stores has its share of each as well.
    place_in_row = (0.1 + seed % 7 * 0.13 + index * 0.6180339887) % 1
    counting: Counting = "manual" if place_in_row < MANUAL_SHARE else "pos"
    old = place_in_row >= 1 - OLD_SHARE
    city, state, country, zipcode, latitude, longitude, timezone = (
        ONTARIO[index % len(ONTARIO)] if old else PLACES[index % len(PLACES)]
    )
    number = rng.randrange(1, 9999)
    shop = _called(SHOP_NAMES[index % len(SHOP_NAMES)], city, index)
    store_id = meteor_id(rng) if index % 11 == 5 else object_id(rng)
    return SimStore(
        index=index,
        id=store_id,
        slug=store_id if index % 13 == 12 else slug_of(shop),
        name=f"{shop} " if index % 7 == 3 else shop,
        chain=slug_of(SHOP_NAMES[index % len(SHOP_NAMES)]),
        street=f"{number} {rng.choice(('Main St', 'Bayly St W', 'E Camelback Rd', 'Liberty Ave'))}",
        city=city,
        state=state,
        country=country,
        zipcode=zipcode,
        latitude=round(latitude + rng.uniform(-0.05, 0.05), 6),
        longitude=round(longitude + rng.uniform(-0.05, 0.05), 6),
        timezone=timezone,
        phone=f"({rng.randrange(201, 989)}) {rng.randrange(200, 999)}-{rng.randrange(1000, 9999)}",
        recreational=state != "PA",
        medical=state in ("PA", "AZ", "MI") or rng.random() < 0.3,
        enterprise_id=uuid(rng),
        status="open",
        counting=counting,
        reserve=3 if old else 0 if counting == "manual" else rng.choice((0, 0, 5)),
        threshold=0 if counting == "manual" else rng.choice((0, 0, 2)),
        medical_percent=10 if counting == "pos" and not old and rng.random() < 0.25 else 0,
        old=old,
    )


def _called(chain: str, city: str, index: int) -> str:
    """`High Tide Phoenix Riverside`. No two stores of a chain are in the same corner of the same district."""
    nth = index // len(SHOP_NAMES)
    district, corner = DISTRICTS[(nth + index) % len(DISTRICTS)], nth // len(DISTRICTS)
    where = CORNERS[corner] if corner < len(CORNERS) else str(corner)
    return f"{chain} {city} {district} {where}".rstrip()


def make_weedmaps_stores(seed: int, count: int) -> tuple[SimStore, ...]:
    """`count` stores on Weedmaps; the first of them are the same however many there are."""
    return tuple(_make_on_weedmaps(Random(f"{seed}:weedmaps:{number}"), seed, number) for number in range(count))


def _make_on_weedmaps(rng: Random, seed: int, number: int) -> SimStore:
    place_in_row = (0.5 + seed % 7 * 0.13 + number * 0.6180339887) % 1
    shop = SHOP_NAMES[(number + 2) % len(SHOP_NAMES)]
    made = _make(rng, seed, _FIRST_ON_WEEDMAPS + number)
    name = f"{_called(shop, made.city, number)} Dispensary"
    return replace(
        made,
        id=str(300_100 + 7 * number),
        slug=slug_of(name),
        name=name,
        chain=slug_of(shop),
        counting="none" if place_in_row < UNCOUNTED_SHARE else "manual",
        reserve=0,
        threshold=0,
        medical_percent=0,
        old=False,
        platform="weedmaps",
    )
