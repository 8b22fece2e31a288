"""Whether a menu takes so much from its store that a person should look first, or is another store's.

What a menu takes is known when it has been applied, so it is judged then, in the same transaction, which is undone where the menu is
suspect. Figures of the refresh tell most menus apart; only where they are large is the database asked for more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from psycopg import AsyncConnection

from menuwatch.catalog.apply import Applied, MenuToApply, SuspectMenu
from menuwatch.db import sql
from menuwatch.payloads import judge
from menuwatch.platforms.base import Platform
from menuwatch.stores.store import Store

_q = sql.load(__package__, "upheaval.sql")


async def look(conn: AsyncConnection[Any], menu: MenuToApply, applied: Applied) -> None:
    """Raises SuspectMenu where the menu that was just applied in this transaction cannot be the store's truth."""
    if menu.trusted or menu.previous is None:
        return
    which = {"dispensary_id": menu.dispensary_id, "provider": menu.provider, "crawled_at": menu.crawled_at}
    known = applied.products + applied.missing
    if judge.gone(applied.missing, known):
        cursor = await conn.execute(_q.missing, {**which, "silence": judge.SILENCE})
        row = await cursor.fetchone()
        assert row is not None, "an aggregate gives a row"
        if reason := judge.gone(row[0], known):
            raise SuspectMenu(reason)
    if max(applied.stock_changes, applied.price_changes) > judge.may_be_blank(applied.products):
        row = await (await conn.execute(_q.bereft, which)).fetchone()
        assert row is not None, "an aggregate gives a row"
        stock, unknown, price = row
        if reason := judge.bereft(applied.products, stock=stock, unknown=unknown, price=price):
            raise SuspectMenu(reason)


async def strange(
    conn: AsyncConnection[Any], store: Store, platform: Platform, pages: Sequence[Sequence[msgspec.Raw]]
) -> str | None:
    """Why these pages are not this store's menu, None where they are. A menu may be another store's for good (shops of one owner share
    theirs): then it was so from its first crawl on, or a person released one."""
    owners = [platform.store_of(items) for items in pages]
    named = {owner for owner in owners if owner is not None}
    if named <= {store.platform_dispensary_id}:
        return None
    if store.first_crawled_at is None and len(named) == 1:
        return None
    values = {"dispensary_id": store.id, "provider": platform.name, "owners": sorted(named)}
    rows = await (await conn.execute(_q.usual_owners, values)).fetchall()
    strangers = named - {store.platform_dispensary_id} - {owner for (owner,) in rows}
    if not strangers:
        return None
    at = [number for number, owner in enumerate(owners, 1) if owner in strangers]
    which = "the menu" if len(at) == len(pages) else f"page {at[0]} of {len(pages)}"
    return f"another store's: {which} is of store {min(strangers)}, and not of {store.platform_dispensary_id}"
