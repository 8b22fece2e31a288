"""How often a login may be tried: after 5 failures of a user, or 20 from an address, each further try has to wait, twice as long as
the one before and up to 15 minutes. It is the same for names that nobody has."""

from __future__ import annotations

from menuwatch.accounts import failures
from menuwatch.db.pool import Pool
from menuwatch.web.client import Address, network_of


class TooManyTries(Exception):
    """One has to wait, that many `seconds`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = int(seconds) + 1
        super().__init__(f"too many logins failed: try again in {self.seconds} seconds")


_LONGEST = 200


def _user(name: str) -> str:
    return name[:_LONGEST].casefold()


async def begin(pool: Pool, name: str, address: Address | None) -> None:
    """Counts a try as failed, before it is made; raises TooManyTries where it has to wait."""
    async with pool.connection(timeout=10) as conn:
        wait = await failures.begin(conn, failures.ADDRESS, network_of(address))
        if wait is not None:
            raise TooManyTries(wait)
        wait = await failures.begin(conn, failures.USER, _user(name))
        if wait is not None:
            await failures.take_back(conn, failures.ADDRESS, network_of(address))
            raise TooManyTries(wait)


async def undo(pool: Pool, name: str, address: Address | None) -> None:
    """The try was never made."""
    async with pool.connection(timeout=10) as conn:
        await failures.take_back(conn, failures.USER, _user(name))
        await failures.take_back(conn, failures.ADDRESS, network_of(address))


async def succeeded(pool: Pool, name: str, address: Address | None) -> None:
    """It was none: the user begins anew. Of the address only this try is taken back, else a good login would pay for bad ones."""
    async with pool.connection(timeout=10) as conn:
        await failures.forget(conn, failures.USER, _user(name))
        await failures.take_back(conn, failures.ADDRESS, network_of(address))
