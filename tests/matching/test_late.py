"""What the doctor says of menus that wait to be matched."""

from __future__ import annotations

from menuwatch.config.settings import Settings
from menuwatch.ops import doctor
from menuwatch.ops.assessment import Finding, Level
from tests.matching.conftest import Matched


async def _matching(matched: Matched) -> Finding:
    (found,) = [one for one in await doctor.work(matched.pool, Settings()) if one.check == "matching"]
    return found


async def test_menus_that_wait_too_long_are_named(matched: Matched) -> None:
    assert (await _matching(matched)).level is Level.OK
    await matched.crawl("a", one="Blue Dream")
    await matched.crawl("b", one="Blue Dream")
    await matched.rows("UPDATE dispensaries SET last_crawled_at = now() - interval '29 minutes'")
    assert (await _matching(matched)).level is Level.OK
    await matched.rows("UPDATE dispensaries SET last_crawled_at = now() - interval '2 hours' WHERE slug = 'a'")
    found = await _matching(matched)
    assert (found.level, found.detail) == (Level.WARNING, "1 menu not matched, the oldest for 2 h")
    await matched.match()
    assert (await _matching(matched)).level is Level.OK
