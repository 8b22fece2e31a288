"""Licence registers: imported again and again, with bad lines, and what becomes of licences that are gone."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from menuwatch.accounts import audit
from menuwatch.core.errors import Refused
from menuwatch.db.pool import Pool
from menuwatch.matching.locations import registers, service
from menuwatch.matching.locations.model import LicenceFilter, LicenceImport
from tests.matching.location_rows import query

HEAD = "License Number,Business Legal Name,Trade Name,License Type,Address,City,Zip Code,Expiration Date"
ROWS = [f"CCD-{n},Mesa {n} LLC,Green Mesa {n},Retailer,{n} Main St,Santa Fe,87501.0,3/24/2099" for n in range(20)]


async def _import(pool: Pool, rows: list[str], *, partial: bool = False) -> LicenceImport:
    content = "\n".join([HEAD, *rows]).encode()
    async with pool.connection() as conn, conn.transaction():
        return await service.import_register(conn, content, "NM", partial=partial)


def _counts(result: LicenceImport) -> tuple[int, int, int, int]:
    return result.added, result.updated, result.unchanged, result.gone


async def test_importing_again_updates_and_tells_what_is_gone_and_back(pool: Pool) -> None:
    assert _counts(await _import(pool, ROWS)) == (20, 0, 0, 0)
    assert _counts(await _import(pool, ROWS)) == (0, 0, 20, 0)
    changed = ROWS[0].replace("Mesa 0 LLC", "Butte LLC").replace("CCD-0", "ccd 0")
    assert _counts(await _import(pool, [changed, *ROWS[1:18], "CCD-99,New LLC,,Retailer,,,,"])) == (1, 1, 17, 2)
    assert await query(pool, "SELECT number, holder FROM licences WHERE holder = 'Butte LLC'") == [
        ("CCD-0", "Butte LLC")
    ]
    assert await query(pool, "SELECT number FROM licences WHERE gone_at IS NOT NULL ORDER BY 1") == [
        ("CCD-18",),
        ("CCD-19",),
    ]
    assert _counts(await _import(pool, ROWS[18:], partial=True)) == (0, 2, 0, 0)
    assert await query(pool, "SELECT count(*) FROM licences WHERE gone_at IS NOT NULL") == [(0,)]
    async with pool.connection() as conn:
        (one,) = await service.list_licences(conn, LicenceFilter(q="ccd-18"))
    assert (one.zipcode, str(one.expires_on), one.ended, one.location_id) == ("87501", "2099-03-24", False, None)


async def test_a_file_that_lacks_most_licences_is_refused(pool: Pool) -> None:
    await _import(pool, ROWS)
    with pytest.raises(Refused, match="lacks 17 of 20 known licences of NM: import it as partial"):
        await _import(pool, ROWS[:3])
    assert await query(pool, "SELECT count(*) FROM licences WHERE gone_at IS NOT NULL") == [(0,)]


async def test_bad_lines_are_named_and_skipped(pool: Pool) -> None:
    bad = [
        ",No Number LLC,,,,,,",
        "CCD-50,,,,,,,",
        "CCD-51,A LLC,,,,,,soon",
        "CCD-52,B LLC,,,1 Main,St,Santa Fe,87501,3/1/2030,more",
        ROWS[0],
    ]
    result = await _import(pool, [ROWS[0], *bad])
    assert result.added == 1
    assert [(one.line, one.reason) for one in result.rejected] == [
        (3, "the licence number is missing"),
        (4, "licence CCD-50 has no holder"),
        (5, "expires_on 'soon' is not a date: write 2027-03-24"),
        (6, "it has 10 values for 8 columns: quote values with ','"),
    ]
    assert result.repeated == [2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the register is empty"),
        ("name,city\nA,B\n", "no column for the licence number"),
        ("number,holder,state\n1,A,NY\n2,B,NY\n", "2 of 2 licences are of NY, not of NM: use --state NY"),
        ("[1, 2", "the register is not JSON"),
    ],
)
def test_what_is_no_register_is_refused(text: str, message: str) -> None:
    with pytest.raises(Refused, match=message):
        registers.read(text, "NM")


async def test_the_recorded_registers_are_in_the_database_line_by_line(pool: Pool, recorded: Path) -> None:
    expected = {"NY": (580, 0, 0), "MD": (181, 2, 0), "MA": (1492, 0, 0), "CO": (2645, 9, 7)}
    with audit.actor_context(audit.Actor(name="ann", kind="user", via="cli")):
        for state in expected:
            (path,) = (recorded / "market").glob(f"licences_{state.lower()}.*")
            async with pool.connection() as conn, conn.transaction():
                result = await service.import_register(conn, path.read_bytes(), state)
            assert (result.added, len(result.repeated), len(result.rejected)) == expected[state]
    counts = dict(await query(pool, "SELECT state, count(*)::integer FROM licences GROUP BY 1"))
    assert counts == {state: added for state, (added, _, _) in expected.items()}
    assert await query(pool, "SELECT actor, action, count(*) FROM audit_log GROUP BY 1, 2") == [
        ("ann", "licences_imported", 4)
    ]
    with gzip.open(recorded / "market" / "licences_ma.csv.gz", "rt") as file:
        zips = {line.split(",")[0]: line for line in file}
    assert ",1852.0," in zips["MC281265"]
    row = "SELECT zipcode, kind, operating, expires_on::text FROM licences WHERE number = 'MC281265'"
    assert await query(pool, row) == [("01852", "Marijuana Cultivator", True, "2024-09-16")]
