"""A mail to a shopper is noted as sent while a menu is being judged: what was found there still goes into the next mail."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from menuwatch.db.pool import Pool
from menuwatch.storefront.watches import store
from menuwatch.storefront.watches.model import NewWatch
from tests.workers.waiting import until

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


async def test_what_is_found_while_a_mail_is_sent_is_due_again(pool: Pool) -> None:
    async with pool.connection() as conn:
        made = await conn.execute(
            "INSERT INTO storefront_items (id, name, category, first_seen)"
            " VALUES (1, 'Thing', 'flower', 0) RETURNING id"
        )
        ((item,),) = await made.fetchall()
        watch = await store.insert(
            conn,
            NewWatch(item_id=item, condition="any_drop", channel="mail"),
            currency="USD",
            token_hash=store.hash_of("token"),
            phase="armed",
            reference=None,
            now=NOW,
            confirmed=False,
            address="sealed",
            token="sealed",
            address_mark=await store.mark_of(conn, "a@example.com"),
        )
        await store.confirm(conn, watch, phase="armed", reference=None, now=NOW)
        await store.add_events(conn, {watch: "{}"}, now=NOW)
        (first,) = await store.unsent_events(conn, watch)

    async def note() -> None:
        async with pool.connection() as conn:
            await store.sent(conn, watch, [first.id], now=NOW + timedelta(minutes=2), pace=60)

    async def waits() -> bool:
        async with pool.connection() as conn:
            found = await conn.execute("SELECT FROM pg_locks WHERE NOT granted")
            return found.rowcount > 0

    async with pool.connection() as conn:
        async with conn.transaction():
            await store.of_items(conn, [item], 1)
            noting = asyncio.create_task(note())
            await until(waits)
            await store.add_events(conn, {watch: "{}"}, now=NOW + timedelta(minutes=1))
        await noting
        due = await (await conn.execute("SELECT due_at FROM price_watches")).fetchone()
        assert due == (NOW + timedelta(minutes=3),)
        assert len(await store.unsent_events(conn, watch)) == 1
