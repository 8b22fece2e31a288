"""Alerts by ntfy and by web push: a server and a push service on real sockets take them, and read them on their own."""

from __future__ import annotations

import asyncio
import hmac
import json
import ssl
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from menuwatch.config.settings import Settings
from menuwatch.core.clock import ManualClock
from menuwatch.core.encryption import SecretBox, new_key
from menuwatch.storefront.watches import store
from menuwatch.storefront.watches.sender import WatchSender
from tests.api.shop import item
from tests.site.shop_pages import Front, Page
from tests.site.test_watches import at


@dataclass
class Receiver:
    """An HTTP server that keeps what is posted to it; `answers` are its next statuses."""

    port: int = 0
    scheme: str = "http"
    answers: list[int] = field(default_factory=list)
    posted: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:]) if name}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.posted.append((head[0].split()[1], headers, body))
        status = self.answers.pop(0) if self.answers else 201
        writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()


@asynccontextmanager
async def receiver(context: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    made = Receiver(scheme="https" if context else "http")
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=context)
    made.port = server.sockets[0].getsockname()[1]
    async with server:
        yield made


@pytest.fixture
async def topics() -> AsyncIterator[Receiver]:
    async with receiver() as made:
        yield made


@pytest.fixture
async def push_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Receiver]:
    """A push service with a certificate of its own, which this process trusts."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "push")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, private = tmp_path / "push.pem", tmp_path / "push.key"
    pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, private)
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    async with receiver(context) as made:
        yield made


@pytest.fixture
def settings(tmp_path: Path, topics: Receiver) -> Settings:
    return Settings(
        home=tmp_path,
        public_url="https://menus.example",
        ntfy_server=topics.url,
        secret_key=(new_key(),),
        alert_timeout_seconds=5,
        alert_retry_seconds=60,
        alert_attempts=2,
    )


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime.now(UTC) + timedelta(minutes=1))


@pytest.fixture
def sender(front: Front, clock: ManualClock) -> WatchSender:
    return WatchSender(front.shop.pool, front.settings, clock=clock, private_push=True)


@pytest.fixture
async def number(front: Front) -> int:
    await front.crawl(await front.shop.store(), 0, [item("1", options=[("1/8oz", 40, 5)]), item("2", "Other")])
    return await front.item("Blue Dream")


async def ask(front: Front, number: int, **fields: str) -> Any:
    given = {"condition": "any_drop", "reach": "any", **fields}
    return await front.post(f"/p/{number}/watch", origin="https://menus.example", **given)


class TestNtfy:
    async def test_a_private_topic_is_made_and_told(
        self, front: Front, number: int, topics: Receiver, sender: WatchSender
    ) -> None:
        answer = await ask(front, number, by="ntfy")
        page = await front.page(answer.headers["location"])
        topic = page.all("input", id="topic")[0]["value"] or ""
        assert topic.startswith(f"{topics.url}/menuwatch-")
        assert len(topic.rpartition("-menuwatch-")[2]) >= 24
        assert await sender.send() == 0
        await at(front, 4, 30)
        assert await sender.send() == 1
        ((path, headers, body),) = topics.posted
        said = json.loads(body)
        assert (path, headers["content-type"]) == ("/", "application/json")
        assert said["topic"] == topic.rpartition("/")[2]
        assert said["title"] == "Blue Dream is $30.00, down from $40.00"
        assert said["click"] == f"https://menus.example/p/{number}-blue-dream"
        assert said["actions"][0]["url"] == f"https://menus.example{answer.headers['location']}"
        ((row,),) = await front.rows("SELECT to_jsonb(w)::text FROM price_watches w")
        assert said["topic"] not in row

    async def test_a_topic_that_was_typed_is_confirmed_first(
        self, front: Front, number: int, topics: Receiver, sender: WatchSender, clock: ManualClock
    ) -> None:
        await ask(front, number, by="ntfy", topic="my-deals")
        await at(front, 4, 30)
        await sender.send()
        said = json.loads(topics.posted[0][2])
        assert (said["topic"], said["title"]) == ("my-deals", "Confirm your alert")
        confirm = said["click"].removeprefix("https://menus.example")
        assert (await front.http.post(confirm)).status_code == 303
        await at(front, 8, 20)
        clock.advance(timedelta(hours=2))
        await sender.send()
        assert json.loads(topics.posted[1][2])["title"] == "Blue Dream is $20.00, down from $30.00"
        assert (
            await front.http.post(said["actions"][1]["url"].removeprefix("https://menus.example"))
        ).status_code == 303
        assert await front.rows("SELECT count(*) FROM price_watches") == [(0,)]

    @pytest.mark.parametrize(
        ("topic", "said"),
        [
            ("a b", "Use a topic name"),
            ("docs", "Use a topic name"),
            ("https://ntfy.example.org/", "Use a topic name"),
            ("https://ntfy.example.org/a/b", "Use a topic name"),
            ("https://user:x@ntfy.example.org/a", "Use a topic name"),
            ("http://ntfy.example.org/a", "reachable on the internet"),
            ("https://127.0.0.1/a", "reachable on the internet"),
            ("https://169.254.169.254/latest", "reachable on the internet"),
            ("https://printer.local/a", "reachable on the internet"),
        ],
    )
    async def test_other_topics_are_refused(self, front: Front, number: int, topic: str, said: str) -> None:
        answer = await ask(front, number, by="ntfy", topic=topic)
        assert answer.status_code == 422
        assert said in Page(answer).text
        assert await front.rows("SELECT count(*) FROM price_watches") == [(0,)]

    async def test_a_name_that_leads_inside_the_network_gets_nothing(
        self, front: Front, number: int, topics: Receiver, sender: WatchSender, clock: ManualClock
    ) -> None:
        await ask(front, number, by="ntfy", topic="https://ntfy.example.org/a")
        # Its name resolves to this machine when the message is sent.
        box = SecretBox(front.settings.secret_key)
        await front.shop.execute(
            f"UPDATE price_watches SET address = '{box.encrypt(f'http://localhost:{topics.port}/a')}'"
        )
        assert await sender.send() == 1
        assert topics.posted == []

    async def test_a_failed_message_is_tried_again(
        self, front: Front, number: int, topics: Receiver, sender: WatchSender, clock: ManualClock
    ) -> None:
        await ask(front, number, by="ntfy")
        await at(front, 4, 30)
        topics.answers += [503]
        await sender.send()
        assert await sender.send() == 0
        clock.advance(timedelta(hours=1))
        await sender.send()
        assert [json.loads(body)["title"] for _, _, body in topics.posted] == [
            "Blue Dream is $30.00, down from $40.00"
        ] * 2
        clock.advance(timedelta(hours=7))
        assert await sender.send() == 0

    async def test_it_can_be_switched_off(self, front: Front, number: int) -> None:
        object.__setattr__(front.settings, "ntfy_server", "")
        page = await front.page(f"/p/{number}-blue-dream")
        assert [one["value"] for one in page.all("input", name="by")] == ["push", "feed"]
        assert (await ask(front, number, by="ntfy")).status_code == 422


class Browser:
    """What a browser keeps of its subscription, and how it reads a message: RFC 8291 and RFC 8188, written after their text."""

    def __init__(self, endpoint: str) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.auth = b"0123456789abcdef"
        self.point = self.key.public_key().public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
        )
        self.subscription = json.dumps(
            {
                "endpoint": endpoint,
                "expirationTime": None,
                "keys": {"p256dh": _b64(self.point), "auth": _b64(self.auth)},
            }
        )

    def read(self, body: bytes) -> Any:
        salt, size, id_length = body[:16], int.from_bytes(body[16:20], "big"), body[20]
        sender, record = body[21 : 21 + id_length], body[21 + id_length :]
        assert (size, id_length) == (4096, 65)
        assert len(record) <= size
        shared = self.key.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender))
        prk = hmac.digest(self.auth, shared, sha256)
        ikm = hmac.digest(prk, b"WebPush: info\x00" + self.point + sender + b"\x01", sha256)
        prk = hmac.digest(salt, ikm, sha256)
        key = hmac.digest(prk, b"Content-Encoding: aes128gcm\x00\x01", sha256)[:16]
        nonce = hmac.digest(prk, b"Content-Encoding: nonce\x00\x01", sha256)[:12]
        content = AESGCM(key).decrypt(nonce, record, None)
        assert content[-1] == 2, "the last record ends in 2"
        return json.loads(content[:-1])


def _b64(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def _raw(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def claims(authorization: str, public: str) -> dict[str, Any]:
    """The claims of a VAPID header (RFC 8292), once its signature was verified with the key that the browser subscribed with."""
    scheme, _, rest = authorization.partition(" ")
    parts = dict(part.strip().split("=", 1) for part in rest.split(","))
    assert (scheme, parts["k"]) == ("vapid", public)
    content, _, signature = parts["t"].rpartition(".")
    r, s = (int.from_bytes(half, "big") for half in (_raw(signature)[:32], _raw(signature)[32:]))
    key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), _raw(public))
    key.verify(utils.encode_dss_signature(r, s), content.encode(), ec.ECDSA(hashes.SHA256()))
    assert json.loads(_raw(content.split(".")[0]))["alg"] == "ES256"
    found = json.loads(_raw(content.split(".")[1]))
    assert isinstance(found, dict)
    return found


class TestWebPush:
    async def subscribed(self, front: Front, number: int, push_service: Receiver) -> Browser:
        """A watch of a browser; its endpoint is replaced by that of the service here, which no shopper could name."""
        browser = Browser("https://push.example.net/send/1")
        answer = await ask(front, number, by="push", subscription=browser.subscription)
        assert answer.status_code == 303, Page(answer).text
        here = browser.subscription.replace("https://push.example.net", push_service.url)
        box = SecretBox(front.settings.secret_key)
        await front.shop.execute(f"UPDATE price_watches SET address = '{box.encrypt(here)}'")
        return browser

    async def test_the_browser_alone_can_read_it_and_the_service_knows_who_sent_it(
        self, front: Front, number: int, push_service: Receiver, sender: WatchSender, clock: ManualClock
    ) -> None:
        public = (await front.http.get("/alerts/push-key")).text
        assert (await front.http.get("/alerts/push-key")).text == public
        browser = await self.subscribed(front, number, push_service)
        await at(front, 4, 30)
        assert await sender.send() == 1
        ((path, headers, body),) = push_service.posted
        assert path == "/send/1"
        assert headers["content-encoding"] == "aes128gcm"
        assert int(headers["ttl"]) > 0
        assert browser.read(body) == {
            "title": "Blue Dream is $30.00, down from $40.00",
            "body": "Blue Dream is $30.00, down from $40.00, at Green-Leaf",
            "url": f"https://menus.example/p/{number}-blue-dream",
        }
        found = claims(headers["authorization"], public)
        assert (found["aud"], found["sub"]) == (push_service.url, "https://menus.example")
        now = clock.now().timestamp()
        assert now < found["exp"] <= now + 24 * 3600

    async def test_keys_and_subscriptions_are_encrypted(
        self, front: Front, number: int, push_service: Receiver
    ) -> None:
        await front.http.get("/alerts/push-key")
        await self.subscribed(front, number, push_service)
        ((key,),) = await front.rows("SELECT convert_from(value, 'UTF8') FROM app_secrets WHERE name = 'web_push'")
        assert key.startswith("fernet:")
        ((row,),) = await front.rows("SELECT to_jsonb(w)::text FROM price_watches w")
        assert "endpoint" not in row

    async def test_a_browser_that_is_gone_ends_it(
        self, front: Front, number: int, push_service: Receiver, sender: WatchSender
    ) -> None:
        await self.subscribed(front, number, push_service)
        await at(front, 4, 30)
        push_service.answers += [410]
        await sender.send()
        assert await front.rows("SELECT count(*) FROM price_watches") == [(0,)]

    async def test_a_service_inside_the_network_gets_nothing(
        self, front: Front, number: int, push_service: Receiver, clock: ManualClock
    ) -> None:
        await self.subscribed(front, number, push_service)
        await at(front, 4, 30)
        assert await WatchSender(front.shop.pool, front.settings, clock=clock).send() == 1
        assert push_service.posted == []

    @pytest.mark.parametrize(
        "change",
        [
            {"endpoint": "https://127.0.0.1/x"},
            {"endpoint": "http://push.example.net/x"},
            {"endpoint": "https://localhost/x"},
            {"endpoint": "https://push.example.net/" + "x" * 1_000},
            {"keys": {"p256dh": "AAAA", "auth": _b64(b"0123456789abcdef")}},
            {"keys": {"p256dh": "é", "auth": "x"}},
            {"keys": None},
        ],
    )
    async def test_other_subscriptions_are_refused(self, front: Front, number: int, change: dict[str, Any]) -> None:
        given = json.loads(Browser("https://push.example.net/x").subscription) | change
        answer = await ask(front, number, by="push", subscription=json.dumps(given))
        assert answer.status_code == 422
        assert "Choose another way" in Page(answer).text or "choose another way" in Page(answer).text
        assert (await ask(front, number, by="push")).status_code == 422
        assert await front.rows("SELECT count(*) FROM price_watches") == [(0,)]

    async def test_a_browser_has_so_many_alerts(self, front: Front, number: int) -> None:
        subscription = Browser("https://push.example.net/x").subscription
        assert (await ask(front, number, by="push", subscription=subscription)).status_code == 303
        columns = (
            "channel, address, token, address_mark, subject, item_id, condition, phase, currency, created_at, confirmed_at,"
            " ends_at"
        )
        await front.shop.execute(
            f"INSERT INTO price_watches (token_hash, {columns})"
            f" SELECT sha256(n::text::bytea), {columns} FROM price_watches, generate_series(1, 29) n"
        )
        answer = await ask(front, number, by="push", subscription=subscription)
        assert "too many alerts" in Page(answer).text

    async def test_the_worker_is_at_the_root(self, front: Front, number: int) -> None:
        answer = await front.http.get("/push-worker.js")
        assert answer.headers["content-type"].startswith("text/javascript")
        page = await front.page(f"/p/{number}-blue-dream")
        (form,) = [tag for name, tag in page.tags if name == "form" and "data-push-key" in tag]
        assert (form["data-push-key"], form["data-push-worker"]) == ("/alerts/push-key", "/push-worker.js")
        (label,) = [tag for name, tag in page.tags if "data-push" in tag]
        assert "hidden" in label


async def test_alerts_that_nobody_opens_end(front: Front, number: int, clock: ManualClock) -> None:
    locations = [(await ask(front, number, by="ntfy")).headers["location"] for _ in range(2)]
    await front.shop.execute("UPDATE price_watches SET ends_at = now() + interval '1 day'")
    await front.page(locations[0])
    async with front.shop.pool.connection() as conn:
        await store.prune(conn, clock.now() + timedelta(days=2))
    await front.page(locations[0])
    await front.page(locations[1], status=404)
