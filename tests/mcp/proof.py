"""The proof: sixty questions and more over stdio and HTTP, in both generations of the protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from menuwatch.db.pool import Pool
from tests.mcp import operations, questions_recorded, questions_simulated, recorded, simulated
from tests.mcp.clients import LEGACY, MODERN, Asking, context, endpoint, over_http, over_stdio
from tests.mcp.question import Questions, Result, answer_all
from tests.users_fixture import bearer

LEAST_EXACT = 0.95


@dataclass(frozen=True, slots=True)
class Market:
    """A database with a market, and what is true of it."""

    pool: Pool
    url: str
    folder: Path
    questions: Questions[Any]
    truth: Any

    @asynccontextmanager
    async def session(self, way: str) -> AsyncIterator[Asking]:
        """A session over `stdio` or `http`."""
        if way == "stdio":
            async with over_stdio(self.url, self.folder, mode=LEGACY) as asking:
                yield asking
        else:
            headers = await bearer(self.pool, name=f"asking-{self.questions.market}", role="operator", scopes=OPERATOR)
            async with (
                endpoint(context(self.pool, self.folder / "storage")) as port,
                over_http(port, headers, mode=MODERN) as asking,
            ):
                yield asking


OPERATOR = ("read", "tasks:write", "workers:write", "hosts:write")


async def make_simulated(pool: Pool, url: str, folder: Path) -> Market:
    """The simulated market, with a system at work."""
    ledger = simulated.make(simulated.noon())
    await simulated.crawl(pool, ledger)
    await operations.put_in(pool, ledger.store_ids)
    return Market(pool, url, folder, questions_simulated.QUESTIONS, ledger)


async def make_recorded(pool: Pool, url: str, folder: Path, data: Path, *, has_menus: bool = False) -> Market:
    """The recorded market; `has_menus`: in a database and archive that have the menus of New Mexico."""
    await recorded.take_in(pool, data, folder / "storage", has_menus=has_menus)
    return Market(pool, url, folder, questions_recorded.QUESTIONS, recorded.read_recording(data))


async def ask(market: Market, way: str, every: int = 1) -> list[Result]:
    """Asks all questions about a market, or every so many."""
    if market.questions is questions_simulated.QUESTIONS:
        await operations.beat(market.pool)
    async with market.session(way) as asking:
        return await answer_all(market.questions, asking, market.truth, every)
