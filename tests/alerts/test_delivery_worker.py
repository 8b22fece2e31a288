"""Alerts on their way: a real receiver that takes them, fails, is slow, leads elsewhere or hangs up."""

from __future__ import annotations

import asyncio
import dataclasses
import ssl
from collections.abc import AsyncIterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest
import trustme
from psycopg import AsyncConnection
from structlog.testing import capture_logs

from menuwatch.alerts import notify
from menuwatch.alerts import secret_keys as alert_secrets
from menuwatch.alerts import ssrf_guard as guard
from menuwatch.alerts import store as alerts
from menuwatch.alerts.delivery_worker import AlertDeliverer
from menuwatch.alerts.model import Rule
from menuwatch.config.settings import Settings
from menuwatch.core.clock import ManualClock
from menuwatch.core.encryption import SecretBox, new_key
from menuwatch.core.errors import Refused
from menuwatch.db.pool import Pool
from tests.alerts.rule_factory import add_rule, rows
from tests.alerts.test_evaluate import NOW, crawl
from tests.alerts.webhook_receiver import Receiver, receiving
from tests.market import add_store, item

SECRET = "a secret that must not be shown"
SETTINGS = Settings(alert_allow_private=1, alert_retry_seconds=60, alert_attempts=4, alert_timeout_seconds=2)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as found:
        yield found


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW + timedelta(hours=3))


@pytest.fixture
def deliverer(pool: Pool, clock: ManualClock) -> AlertDeliverer:
    return AlertDeliverer(pool, SETTINGS, clock=clock)


async def _to(
    conn: AsyncConnection[Any], rule: Rule, url: str, kind: str = "webhook", secret_box: SecretBox | None = None
) -> None:
    secret_box = secret_box or SecretBox()
    channel = {
        "kind": kind,
        "address": secret_box.encrypt(url),
        "secret": secret_box.encrypt(SECRET),
        "shown": "http://there/…",
    }
    await alerts.set_channels(conn, rule.id, [channel])


async def _cheap(
    conn: AsyncConnection[Any], url: str, *, kind: str = "webhook", secret_box: Any = None, **more: Any
) -> int:
    """A rule below 25 for a store whose one product costs 30; returns the store."""
    store = await add_store(conn)
    rule = await add_rule(conn, "cheap", "store", "price_below", dispensary_id=store, amount=Decimal(25), **more)
    await _to(conn, rule, url, kind, secret_box)
    await crawl(conn, store, 0, item("a", price="30", brand="Acme"))
    return store


async def _log(pool: Pool) -> list[dict[str, Any]]:
    async with pool.connection() as conn:
        return await rows(conn, "SELECT * FROM alert_deliveries ORDER BY id")


async def test_once_for_each_crossing_and_signed(pool: Pool, deliverer: AlertDeliverer, receiver: Receiver) -> None:
    async with pool.connection() as conn:
        store = await _cheap(conn, receiver.url())
        await deliverer.step()
        assert receiver.got == []
        for hour, price in ((0.1, "24"), (0.2, "23"), (0.3, "25.10"), (0.4, "24"), (0.5, "26"), (0.6, "20.50")):
            await crawl(conn, store, hour, item("a", price=price, brand="Acme"))
            await deliverer.step()
            await deliverer.step()
    assert len(receiver.got) == 2
    first, second = (one.json() for one in receiver.got)
    assert all(one.signed_with(SECRET) and not one.signed_with("another") for one in receiver.got)
    (event,) = second["events"]
    assert (event["before"]["price"], event["after"]["price"]) == (26, 20.5)
    assert b'"price": 20.50' in receiver.got[1].body, "prices keep their digits"
    assert (event["product"]["brand"], event["store"]["name"], second["rule"]["name"]) == ("Acme", "store-1", "cheap")
    assert first["id"] == receiver.got[0].headers["webhook-id"] != second["id"]
    assert first["events"][0]["id"] != event["id"]
    assert [(one["status"], one["attempts"], one["response_code"]) for one in await _log(pool)] == [
        ("delivered", 1, 200)
    ] * 2


async def test_a_receiver_that_fails_gets_it_again(
    pool: Pool, deliverer: AlertDeliverer, receiver: Receiver, clock: ManualClock
) -> None:
    receiver.answer = lambda n: (500, None, 200)[n]
    async with pool.connection() as conn:
        store = await _cheap(conn, receiver.url())
        await crawl(conn, store, 1, item("a", price="20"))
    waits = []
    for _ in range(3):
        await deliverer.step()
        (one,) = await _log(pool)
        if one["next_attempt_at"]:
            waits.append((one["next_attempt_at"] - clock.now()).total_seconds())
            clock.advance(timedelta(seconds=waits[-1] - 1))
            await deliverer.step()
            clock.advance(timedelta(seconds=1))
    assert len(receiver.got) == 3
    assert 30 <= waits[0] <= 60 <= waits[1] <= 120
    assert len({got.headers["webhook-id"] for got in receiver.got}) == 1
    assert len({got.body for got in receiver.got}) == 1
    assert all(got.signed_with(SECRET) for got in receiver.got)
    assert (one["status"], one["attempts"], one["error"]) == ("delivered", 3, None)
    assert [(t["code"], bool(t["error"])) for t in one["tries"]] == [(500, True), (None, True), (200, False)]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (302, "redirects are not followed"),
        (0.6, "did not respond within 0.3 s"),
        (None, "cannot be reached"),
        (404, "responded with 404"),
    ],
)
async def test_in_the_end_it_is_given_up(
    pool: Pool, receiver: Receiver, clock: ManualClock, answer: Any, says: str
) -> None:
    timeout = 0.3 if isinstance(answer, float) else 30.0
    twice = AlertDeliverer(
        pool, dataclasses.replace(SETTINGS, alert_timeout_seconds=timeout, alert_attempts=2), clock=clock
    )
    receiver.answer = lambda _: answer
    receiver.location = receiver.url("/elsewhere")
    async with pool.connection() as conn:
        store = await _cheap(conn, receiver.url())
        await crawl(conn, store, 1, item("a", price="20"))
    for _ in range(4):
        await twice.step()
        clock.advance(timedelta(hours=7))
    (one,) = await _log(pool)
    assert (one["status"], one["attempts"], one["next_attempt_at"]) == ("failed", 2, None)
    assert says in one["error"]
    assert [got.path for got in receiver.got] == ["/hook", "/hook"]


async def test_replay_sends_the_same_once_more(
    pool: Pool, deliverer: AlertDeliverer, receiver: Receiver, clock: ManualClock
) -> None:
    receiver.answer = lambda n: 410 if n == 0 else 200
    async with pool.connection() as conn:
        store = await _cheap(conn, receiver.url())
        await crawl(conn, store, 1, item("a", price="20"))
        await deliverer.step()
        (one,) = await _log(pool)
        assert (one["status"], one["attempts"]) == ("failed", 1), "410: nobody is there any more"
        assert await alerts.replay(conn, one["id"], clock.now())
        assert not await alerts.replay(conn, one["id"], clock.now()), "it is on its way"
        await deliverer.step()
        assert await alerts.replay(conn, one["id"], clock.now())
        await deliverer.step()
    (one,) = await _log(pool)
    assert (one["status"], one["replays"], len(one["tries"])) == ("delivered", 2, 3)
    assert [got.json()["replay"] for got in receiver.got] == [0, 1, 2]
    assert len({got.headers["webhook-id"] for got in receiver.got}) == 1
    assert len({msgspec.json.encode(got.json()["events"]) for got in receiver.got}) == 1


async def test_many_couriers_send_each_message_once(pool: Pool, receiver: Receiver, clock: ManualClock) -> None:
    async with pool.connection() as conn:
        store = await _cheap(conn, receiver.url())
        for hour in range(1, 7):
            await crawl(conn, store, hour / 4, item("a", price="20" if hour % 2 else "30"))
            await AlertDeliverer(pool, SETTINGS, clock=clock).gather()
    await asyncio.gather(*(AlertDeliverer(pool, SETTINGS, clock=clock).step() for _ in range(6)))
    assert len(receiver.got) == 3
    assert len({got.headers["webhook-id"] for got in receiver.got}) == 3


async def test_what_its_sender_leaves_behind_is_sent_by_another(
    pool: Pool, deliverer: AlertDeliverer, receiver: Receiver, clock: ManualClock
) -> None:
    async with pool.connection() as conn:
        store = await _cheap(conn, receiver.url())
        await crawl(conn, store, 1, item("a", price="20"))
        await deliverer.gather()
        (lost,) = await alerts.lease_due(conn, clock.now(), 5, lease_seconds=60)
    await deliverer.step()
    assert receiver.got == [], "somebody has it"
    clock.advance(timedelta(seconds=61))
    await deliverer.step()
    assert len(receiver.got) == 1
    async with pool.connection() as conn:
        await alerts.not_delivered(conn, lost, alerts.Attempt(at=clock.now(), ms=1, error="too late"), None)
    (one,) = await _log(pool)
    assert (one["status"], one["attempts"]) == ("delivered", 2), "who comes back late changes nothing"


async def test_the_rule_that_has_waited_longest_comes_first(pool: Pool) -> None:
    async with pool.connection() as conn, conn.transaction():
        made = [(await add_rule(conn, name, "operations", "no_worker")).id for name in ("late", "early")]
        for rule, minutes in ((made[0], 5), (made[1], 9), (made[0], 1)):
            await conn.execute(
                "INSERT INTO alert_events (rule_id, source, fired_at, due_at, facts)"
                " VALUES (%s, %s::text, %s, %s, '{\"firing\": true}')",
                [rule, minutes, NOW, NOW - timedelta(minutes=minutes)],
            )
        assert list(await alerts.due_events(conn, NOW, rules=1)) == [made[1]]
        assert sorted(await alerts.due_events(conn, NOW, rules=2)) == made


async def test_a_digest_waits_and_tells_all_at_once(
    pool: Pool, deliverer: AlertDeliverer, receiver: Receiver, clock: ManualClock
) -> None:
    async with pool.connection() as conn:
        store = await add_store(conn)
        begin = NOW.replace(minute=0, second=0) + timedelta(minutes=5)
        rule = await add_rule(
            conn, "hourly", "store", "price_below", dispensary_id=store, amount=Decimal(25), digest="hourly"
        )
        await _to(conn, rule, receiver.url())
        names = [str(n) for n in range(6)]
        await crawl(conn, store, 0, *(item(n, price="30") for n in names), at=begin)
        await crawl(conn, store, 0.2, *(item(n, price="20" if n < "3" else "30") for n in names), at=begin)
        await crawl(conn, store, 0.4, *(item(n, price="20") for n in names), at=begin)
    hour = NOW.replace(minute=0, second=0) + timedelta(hours=1)
    early = AlertDeliverer(pool, SETTINGS, clock=ManualClock(hour - timedelta(seconds=1)))
    assert await early.step() == pytest.approx(1.0)
    assert receiver.got == []
    await AlertDeliverer(pool, SETTINGS, clock=ManualClock(hour)).step()
    (got,) = receiver.got
    assert [event["product"]["provider_product_id"] for event in got.json()["events"]] == names


async def test_a_channel_is_sealed_and_never_told(pool: Pool, receiver: Receiver, clock: ManualClock) -> None:
    key = new_key()
    hidden = "token-in-the-address"
    receiver.answer = lambda n: 500 if n == 0 else 200
    async with pool.connection() as conn:
        store = await _cheap(conn, receiver.url(f"/{hidden}"), secret_box=SecretBox([key]))
        await crawl(conn, store, 1, item("a", price="20"))
    with capture_logs() as told:
        await AlertDeliverer(pool, dataclasses.replace(SETTINGS, secret_key=(key,)), clock=clock).step()
        clock.advance(timedelta(hours=1))
        await AlertDeliverer(pool, dataclasses.replace(SETTINGS, secret_key=(new_key(),)), clock=clock).step()
    everything = str(told)
    async with pool.connection() as conn:
        for table in ("alert_rules", "alert_channels", "alert_events", "alert_deliveries"):
            everything += str(await rows(conn, f"SELECT to_jsonb(t) FROM {table} t"))
    assert len(receiver.got) == 1
    assert "no key in SECRET_KEY decrypts it" in everything
    assert SECRET not in everything
    assert hidden not in everything


async def test_a_channel_from_before_the_key_works_in_clear_and_once_it_is_sealed(
    pool: Pool, receiver: Receiver, clock: ManualClock
) -> None:
    settings = dataclasses.replace(SETTINGS, secret_key=(new_key(),))
    async with pool.connection() as conn:
        store = await _cheap(conn, receiver.url("/hook"))
        await crawl(conn, store, 1, item("a", price="20"), item("b", price="20"))
    await AlertDeliverer(pool, settings, clock=clock).step()
    assert len(receiver.got) == 1
    assert await alert_secrets.encrypt_all(pool, settings) == (1, 1)
    async with pool.connection() as conn:
        assert await alerts.replay(conn, 1, clock.now())
    await AlertDeliverer(pool, settings, clock=clock).step()
    assert len(receiver.got) == 2
    assert all(got.signed_with(SECRET) for got in receiver.got)


async def test_private_addresses_get_nothing(pool: Pool, receiver: Receiver, clock: ManualClock) -> None:
    strict = AlertDeliverer(pool, dataclasses.replace(SETTINGS, alert_allow_private=0), clock=clock)
    async with pool.connection() as conn:
        store = await _cheap(conn, f"http://localhost:{receiver.port}/hook")
        rule = await add_rule(conn, "too", "store", "price_below", dispensary_id=store, amount=Decimal(25))
        await _to(conn, rule, receiver.url(scheme="json"), "apprise")
        await crawl(conn, store, 1, item("a", price="20"))
    await strict.step()
    assert receiver.got == []
    assert all("not a public address" in one["error"] for one in await _log(pool))


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True), ("2606:2800:220:1:248:1893:25c8:1946", True),
        ("127.0.0.1", False), ("10.1.2.3", False), ("192.168.0.1", False), ("172.16.0.1", False), ("169.254.169.254", False),
        ("100.64.0.1", False), ("0.0.0.0", False), ("224.0.0.1", False), ("255.255.255.255", False),
        ("::1", False), ("::", False), ("fe80::1%eth0", False), ("fd00::1", False), ("::ffff:127.0.0.1", False),
        ("::ffff:10.0.0.1", False), ("64:ff9b::7f00:1", False), ("2002:7f00:1::", False), ("ff02::1", False),
    ],
)  # fmt: skip
def test_what_is_public(address: str, public: bool) -> None:
    assert guard.is_public(address) is public


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("notaurl", "use http or https, 'notaurl' has no scheme: for example https://"),
        ("ftp://example.com/x", "http or https"), ("file:///etc/passwd", "http or https"), ("https:///x", "webhook URL has no host"),
        ("https://example.com:99999/", "invalid webhook URL"), ("https://me:pw@example.com/", "user or password"),
        ("http://127.0.0.1/", "not a public"), ("http://[::1]/", "not a public address"), ("http://localhost/", "not a public"),
    ],
)  # fmt: skip
def test_addresses_that_are_refused_at_once(url: str, says: str) -> None:
    with pytest.raises(Refused, match=says):
        guard.check_literal(url, allow_private=False)


async def test_certificates_are_verified(
    pool: Pool, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    ca = trustme.CA()
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("localhost").configure_cert(served)
    deliverer = AlertDeliverer(
        pool, dataclasses.replace(SETTINGS, alert_attempts=9, alert_retry_seconds=1), clock=clock
    )
    async with receiving(served) as receiver, pool.connection() as conn:
        store = await _cheap(conn, f"https://localhost:{receiver.port}/hook")
        await crawl(conn, store, 1, item("a", price="20"))
        await deliverer.step()
        (one,) = await _log(pool)
        assert "certificate" in one["error"].lower()
        assert receiver.got == []
        ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        clock.advance(timedelta(seconds=2))
        await deliverer.step()
    assert len(receiver.got) == 1
    assert receiver.got[0].headers["host"] == f"localhost:{receiver.port}"


async def test_apprise_carries_text(
    pool: Pool, deliverer: AlertDeliverer, receiver: Receiver, clock: ManualClock
) -> None:
    receiver.answer = lambda n: 302 if n == 0 else 200
    receiver.location = receiver.url("/elsewhere")
    async with pool.connection() as conn:
        store = await _cheap(conn, receiver.url(scheme="json"), kind="apprise")
        await crawl(conn, store, 1, item("a", price="20.50", brand="Acme"))
    await deliverer.step()
    (one,) = await _log(pool)
    assert one["error"] == "the service rejected it"
    clock.advance(timedelta(minutes=2))
    await deliverer.step()
    assert [got.path for got in receiver.got] == ["/hook", "/hook"]
    told = receiver.got[1].json()
    assert told["title"] == "cheap: price below"
    assert told["message"] == "Acme Thing at store-1: $20.50, was $30.00"
    assert (await _log(pool))[0]["status"] == "delivered"


def test_notification_urls_that_are_refused() -> None:
    for url, says in (
        ("https://example.com", "for https:// use a webhook"),
        ("nothing", "begins with a service"),
        ("nosuchservice://x", "unknown service nosuchservice://"),
        ("syslog://", "acts on the sending machine"),
        ("json://127.0.0.1/x", "not a public address"),
    ):
        with pytest.raises(Refused, match=says):
            notify.check(url, allow_private=False)
    assert notify.check("json://user:pw@example.com/secret", allow_private=False) == "json://…"
