"""The Python client against a server with a database."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import httpx
import msgspec
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from starlette.requests import Request
from starlette.responses import Response

from menuwatch_client import (
    ApiError,
    AsyncClient,
    Client,
    ConfigurationError,
    ConnectionFailed,
    InvalidRequest,
    InvalidResponse,
    NotAuthenticated,
    NotFound,
    PreconditionFailed,
    Retries,
    ServerError,
    TooManyRequests,
    models,
    to_arrow,
    to_pandas,
)
from tests.api.serving import serving
from tests.api.shop import Shop, at, item
from tests.clients.conftest import Address

QUICK = Retries(first_wait=0.01)


async def _menu(shop: Shop) -> int:
    """A store with five products; Apple becomes cheaper in the second crawl."""
    store = await shop.store(state="NM", latitude=35.0844, longitude=-106.6504)
    names = ["Apple", "Berry", "Cherry", "Date", "Elder"]
    for hours, price in ((1, "43.10"), (2, "40.00")):
        items = [
            item(name[0].lower(), name, options=[("1/8oz", price if name == "Apple" else 12, 5)]) for name in names
        ]
        await shop.crawl(store, hours, items)
    return store


async def test_lists_are_read_over_all_pages(shop: Shop, address: Address) -> None:
    store = await _menu(shop)

    def read() -> None:
        with Client(address.url, address.token) as client:
            products = client.list_products(store=[store], order="name", limit=2)
            assert [product.name for product in products] == ["Apple", "Berry", "Cherry", "Date", "Elder"]
            assert next(iter(products)).name == "Apple", "read again from the first page"
            assert [len(page.items) for page in products.pages()] == [2, 2, 1]
            apple = next(iter(products))
            assert isinstance(apple, models.Product)
            assert apple.price == Decimal("40.00")
            assert str(apple.price) == "40.00", "digits as stored"
            assert apple.updated_at == at(2)
            assert apple.variants[0].option == "1/8oz"
            rest = client.list_products(store=[store], limit=2, cursor=products.first_page().next)
            assert [product.name for product in rest] == ["Cherry", "Date", "Elder"]

            history = client.get_product_history(apple.id, limit=1)
            assert [(state.from_, state.price) for state in history] == [
                (at(2), Decimal("40.00")),
                (at(1), Decimal("43.10")),
            ]
            assert [gap.reason for gap in history.first_page().gaps] == ["unobserved"]
            assert [state.from_ for state in client.get_product_history(apple.id, until=at(2))] == [at(1)]

    await asyncio.to_thread(read)


async def test_the_asynchronous_client_gives_the_same(shop: Shop, address: Address) -> None:
    store = await _menu(shop)
    async with AsyncClient(address.url, address.token) as client:
        first, *_ = await client.list_products(order="-price", limit=2).to_list()
        assert first.name == "Apple"
        assert (await client.get_store(store)).state == "NM"
        (change,) = await client.list_changes(kind="price_drop").to_list()
        assert isinstance(change, models.Change)
        assert (change.before.price, change.after.price) == (Decimal("43.10"), Decimal("40.00"))
        feed = client.follow_changes(limit=1)
        assert [row.name async for row in feed] == ["Apple"], "a feed always has a cursor, and its reading ends"
        pages = [page async for page in feed.pages()]
        again = client.follow_changes(cursor=pages[-1].next)
        assert await again.to_list() == []
        frame = await client.list_products().select("id", "name").to_polars()
        assert frame["name"].to_list() == ["Apple", "Berry", "Cherry", "Date", "Elder"]
        many = await asyncio.gather(*(client.get_product(number) for number in frame["id"]))
        assert [product.name for product in many] == frame["name"].to_list()


async def test_selected_members_only(shop: Shop, address: Address) -> None:
    await _menu(shop)

    def read() -> None:
        with Client(address.url, address.token) as client:
            products = client.list_products(limit=2).select("name", "price", "first_seen_at")
            first = next(iter(products))
            assert (first.name, first.price, first.first_seen_at) == ("Apple", Decimal("40.00"), at(1))
            with pytest.raises(AttributeError):
                _ = first.brand_name
            assert products.to_arrow().column_names == ["name", "price", "first_seen_at"]
            history = client.get_product_history(1).select("from")
            assert [state.from_ for state in history] == [at(2), at(1)]
            rows = list(client.list_changes().select("type", "name"))
            assert rows == [{"type": "product", "name": "Apple"}]
            with pytest.raises(InvalidRequest, match="unknown: `nmae`") as refused:
                list(client.list_products().select("nmae"))
            (error,) = refused.value.problem.errors or ()
            assert error.parameter == "fields"
            with pytest.raises(ValueError, match="at least one"):
                client.list_products().select()

    await asyncio.to_thread(read)


async def test_tables(shop: Shop, address: Address) -> None:
    await _menu(shop)

    def read() -> None:
        with Client(address.url, address.token) as client:
            products = client.list_products(order="name")
            table = products.to_arrow()
            assert table.num_rows == 5
            assert table["price"].to_pylist() == [40.0, 12.0, 12.0, 12.0, 12.0]
            assert table.schema.field("first_seen_at").type == pa.timestamp("us", tz="UTC")
            assert table["first_seen_at"][0].as_py() == at(1)
            assert table["variants"][0].as_py()[0]["option"] == "1/8oz"
            assert table["thc"][0].as_py() == {"lo": 21.5, "hi": 21.5, "unit": "%"}
            exact = products.to_arrow(exact=True)["price"].to_pylist()
            assert exact == [Decimal(40)] + [Decimal(12)] * 4
            frame = products.to_pandas()
            assert isinstance(frame, pd.DataFrame)
            assert frame.groupby("category_canon")["price"].median().to_dict() == {"flower": 12.0}
            assert isinstance(products.to_polars(), pl.DataFrame)
            assert products.to_polars()["quantity"].sum() == 25

            empty = client.list_products(q="nothing is called so").to_pandas()
            assert list(empty.columns) == list(frame.columns)
            assert len(empty) == 0
            changes = client.list_changes().to_arrow()
            assert changes["type"].to_pylist() == ["product"]
            assert "from_name" in changes.column_names, "columns of both shapes"
            stores = client.list_stores()
            assert stores.to_arrow() == to_arrow(stores.to_list(), models.Store)
            (store,) = to_pandas([client.get_store(1)])["name"]
            assert store == "Green-Leaf"
            report = client.list_coverage()
            assert len(report.to_pandas()) == 0

    await asyncio.to_thread(read)


async def test_writing(shop: Shop, address: Address) -> None:
    store = await _menu(shop)

    def write() -> None:
        with Client(address.url, address.token) as client:
            before = client.get_store(store)
            changed = client.change_store(store, models.StoreChange(crawl_interval_hours=Decimal("6.5")))
            assert (changed.crawl_interval_hours, changed.name) == (Decimal("6.50"), before.name)
            with pytest.raises(PreconditionFailed) as refused:
                client.change_store(store, models.StoreChange(crawl_enabled=False), if_match='"other"')
            assert refused.value.problem.current["id"] == store
            assert client.change_store(store, models.StoreChange(shown=None)).shown is None, "null is sent as null"

            key = "one-and-the-same"
            task = models.NewTask(role="payload_fetch", dispensary_id=store)
            first = client.create_task(task, idempotency_key=key)
            assert client.create_task(task, idempotency_key=key) == first

    await asyncio.to_thread(write)


async def test_errors_carry_the_problem(shop: Shop, address: Address) -> None:
    def read() -> None:
        with Client(address.url, address.token) as client:
            with pytest.raises(NotFound, match="store 99 does not exist") as missing:
                client.get_store(99)
            problem = missing.value.problem
            assert (problem.status, problem.title, problem.instance) == (404, "Not found", "/api/stores/99")
            assert problem.trace_id
            with pytest.raises(InvalidRequest) as invalid:
                client.list_stores(near="here").to_list()
            (error,) = invalid.value.problem.errors or ()
            assert (error.parameter, error.in_) == ("near", "query")
            with pytest.raises(ConfigurationError, match="time zone"):
                client.list_stores(updated_since=datetime(2026, 1, 1)).to_list()  # noqa: DTZ001
        with Client(address.url, "mw_1_wrong") as client, pytest.raises(NotAuthenticated):
            client.list_stores().to_list()

    await asyncio.to_thread(read)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        with (
            Client(f"http://127.0.0.1:{port}", "mw_1_x", retries=Retries(attempts=2, first_wait=0.01)) as client,
            pytest.raises(ConnectionFailed, match=rf"GET http://127.0.0.1:{port}/api/stores/1 failed"),
        ):
            client.get_store(1)


def test_addresses_and_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MENUWATCH_URL", raising=False)
    with pytest.raises(ConfigurationError, match="MENUWATCH_URL"):
        Client()
    with pytest.raises(ConfigurationError, match="http://"):
        Client("menus.example")
    with pytest.raises(ConfigurationError, match="token"):
        Client("http://menus.example", "mw_1_a\nb")
    monkeypatch.setenv("MENUWATCH_URL", "http://menus.example")
    Client().close()


Handler = Callable[[Request], Awaitable[Response]]


@asynccontextmanager
async def _in_front(app: Any, handler: Callable[[int, str], Response | None]) -> AsyncIterator[tuple[str, list[str]]]:
    """A server that answers itself where `handler`, given how many requests there were and the method, has an answer; otherwise
    the app does. Gives its address, and the Idempotency-Keys of its requests."""
    keys: list[str] = []

    async def asgi(scope: Any, receive: Any, send: Any) -> None:
        keys.append(Request(scope).headers.get("idempotency-key", ""))
        answer = handler(len(keys), scope["method"])
        await (app if answer is None else answer)(scope, receive, send)

    async with serving(asgi) as port:
        yield f"http://127.0.0.1:{port}", keys


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_requests_are_repeated_until_they_succeed(app: Any, shop: Shop, address: Address, status: int) -> None:
    store = await _menu(shop)

    def busy(count: int, _: str) -> Response | None:
        return Response("busy", status, headers={"Retry-After": "0"}) if count % 3 else None

    async with _in_front(app, busy) as (url, keys):
        async with AsyncClient(url, address.token, retries=QUICK) as client:
            assert (await client.get_store(store)).id == store
            assert len(keys) == 3
            task = await client.crawl_store(store)
        assert len(keys) == 6
        assert len(set(keys[3:])) == 1, "the same key each time: processed once"
        assert keys[3]

        def synchronous() -> None:
            with Client(url, address.token, retries=QUICK) as client:
                assert client.get_one_task(task.task.id).id == task.task.id

        await asyncio.to_thread(synchronous)
        assert len(keys) == 9


async def test_repeating_ends(app: Any, shop: Shop, address: Address) -> None:
    answers: dict[str, Response] = {
        "later": Response("", 429, headers={"Retry-After": "3600"}),
        "never": Response("gone to lunch", 503),
    }
    for name, (kind, requests) in {"later": (TooManyRequests, 1), "never": (ServerError, 3)}.items():
        async with _in_front(app, lambda *_, name=name: answers[name]) as (url, keys):
            async with AsyncClient(url, address.token, retries=Retries(attempts=3, first_wait=0.01)) as client:
                with pytest.raises(kind) as failed:
                    await client.get_store(1)
            assert len(keys) == requests
            assert isinstance(failed.value, ApiError)
            assert failed.value.problem.instance == "/api/stores/1"
    assert "gone to lunch" in failed.value.problem.detail


async def test_lost_connections(app: Any, shop: Shop, address: Address) -> None:
    """PATCH and DELETE are not sent again when it is unknown whether they were processed; everything else is."""
    store = await _menu(shop)

    class Cut(Response):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            # A body shorter than announced: the connection ends within the response.
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"99")]})
            await send({"type": "http.response.body", "body": b"{", "more_body": False})

    async with (
        _in_front(app, lambda count, _: Cut() if count % 2 else None) as (url, keys),
        AsyncClient(url, address.token, retries=QUICK) as client,
    ):
        assert (await client.get_store(store)).id == store
        assert (await client.pause_store(store)).crawl_enabled is False
        assert len(keys) == 4
        with pytest.raises(ConnectionFailed):
            await client.remove_store(store)
        assert len(keys) == 5
        assert (await client.get_store(store)).id == store


@pytest.mark.parametrize(("status", "requests"), [(504, 1), (502, 1), (503, 3)])
async def test_deletes_are_repeated_only_if_they_were_not_processed(
    app: Any, shop: Shop, address: Address, status: int, requests: int
) -> None:
    store = await _menu(shop)
    async with (
        _in_front(app, lambda *_: Response("", status, headers={"Retry-After": "0"})) as (url, keys),
        AsyncClient(url, address.token, retries=Retries(attempts=3, first_wait=0.01)) as client,
    ):
        with pytest.raises(ServerError):
            await client.remove_store(store)
    assert len(keys) == requests


async def test_errors_have_no_password_of_the_address() -> None:
    async with AsyncClient("http://user:s3cr3t@127.0.0.1:1", "mw_x", retries=Retries(attempts=1)) as client:
        with pytest.raises(ConnectionFailed) as failed:
            await client.get_store(1)
    assert "s3cr3t" not in str(failed.value)
    assert "127.0.0.1:1/api/stores/1" in str(failed.value)


async def test_other_programs_at_the_address(app: Any, shop: Shop, address: Address) -> None:
    for body, message in (("<html>", "unexpected response to GET /api/stores"), ('{"items": [{"id": "x"}]}', "items")):
        async with (
            _in_front(app, lambda *_, body=body: Response(body, 200)) as (url, _),
            AsyncClient(url, address.token) as client,
        ):
            with pytest.raises(InvalidResponse, match=message):
                await client.list_stores().to_list()
    page = msgspec.json.encode({"items": [], "next": "again"})
    async with (
        _in_front(app, lambda *_: Response(page, 200)) as (url, _),
        AsyncClient(url, address.token) as client,
    ):
        with pytest.raises(InvalidResponse, match="cursor of its own page"):
            await client.list_stores().to_list()


def test_waits() -> None:
    retries = Retries(attempts=4, first_wait=2, longest_wait=5)
    for attempt, longest in ((1, 2), (2, 4), (3, 5)):
        waits = [retries.wait(attempt) for _ in range(200)]
        assert all(wait is not None and longest / 2 <= wait <= longest for wait in waits)
        assert len(set(waits)) > 100, "clients do not return all at once"
    assert retries.wait(4) is None
    assert retries.wait(1, 3.0) == 3.0
    assert retries.wait(1, 5.1) is None


def test_retry_after_as_a_date() -> None:
    from menuwatch_client.core import retry_after

    def named(text: str) -> float | None:
        return retry_after(httpx.Response(503, headers={"Retry-After": text}))

    later = datetime.fromtimestamp(time.time() + 30, UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
    seconds = named(later)
    assert seconds is not None
    assert 25 < seconds <= 30
    assert (named("7"), named("soon"), named("")) == (7.0, None, None)
    assert named("Mon, 01 Jan 2024 00:00:00 GMT") == 0.0


async def test_dates_and_bytes(shop: Shop, address: Address) -> None:
    await _menu(shop)
    async with AsyncClient(address.url, address.token) as client:
        exported = await client.export_table("stores", format="csv")
        assert exported.decode().splitlines()[0].startswith("dispensary_id,platform,")
        assert await client.list_new_and_gone(since=date(2026, 3, 1)).to_list() == []
        assert b"menuwatch_" in await client.metrics()
