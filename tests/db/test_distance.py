"""`distance_meters` in SQL, which searches near a place and price watches use."""

from __future__ import annotations

import math

import pytest

from menuwatch.db.pool import Connection, Pool

EARTH_RADIUS = 6_371_008.8
"""Mean radius in metres (IUGG)."""
POINTS = [(0.0, 0.0), (89.0, 10.0), (-45.5, 179.5), (33.4, -112.1), (40.7, -74.0), (-33.4, 67.9)]


async def distance(conn: Connection, a: tuple[float, float], b: tuple[float, float]) -> int:
    row = await (await conn.execute("SELECT distance_meters(%s, %s, %s, %s)", [*a, *b])).fetchone()
    assert row is not None
    return int(row[0])


async def test_distance_is_symmetric_and_at_most_half_the_circumference(pool: Pool) -> None:
    async with pool.connection() as conn:
        for a in POINTS:
            assert await distance(conn, a, a) == 0
            for b in POINTS:
                meters = await distance(conn, a, b)
                assert meters == await distance(conn, b, a)
                assert 0 <= meters <= math.pi * EARTH_RADIUS + 1
                for c in POINTS:
                    assert meters <= await distance(conn, a, c) + await distance(conn, c, b) + 2


@pytest.mark.parametrize("degrees", [0.01, 0.5, 1.0])
async def test_along_a_meridian_it_is_the_arc(pool: Pool, degrees: float) -> None:
    async with pool.connection() as conn:
        for latitude, longitude in POINTS:
            arc = math.radians(degrees) * EARTH_RADIUS
            assert await distance(conn, (latitude, longitude), (latitude + degrees, longitude)) == pytest.approx(
                arc, abs=1
            )


async def test_new_york_to_los_angeles_as_published(pool: Pool) -> None:
    # 2,445 miles (3,936 km) on a sphere between the two city halls.
    async with pool.connection() as conn:
        assert await distance(conn, (40.7128, -74.0060), (34.0522, -118.2437)) == pytest.approx(3_935_700, abs=1_500)


async def test_across_the_date_line_it_is_short(pool: Pool) -> None:
    async with pool.connection() as conn:
        assert await distance(conn, (0, 179.5), (0, -179.5)) == pytest.approx(math.radians(1) * EARTH_RADIUS, abs=1)
