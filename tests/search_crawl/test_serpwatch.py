"""SerpWatch: what is sent, what every answer of it means, and every shape of its webhooks. Answers come over real sockets."""

from __future__ import annotations

import gzip
import json
import logging
from base64 import b64encode
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.core.clock import ManualClock
from menuwatch.core.errors import Refused
from menuwatch.search_crawl.protocols import BadWebhook, Delivery, Order, OrderRefused
from menuwatch.search_crawl.providers.serpwatch import SerpWatch
from menuwatch.sim.http import HttpServer, Request, Response

TOKEN = "tok_9f8e7d6c5b4a"
SECRET = "s3cr3t-of-the-webhook"
ORDER = Order(
    url="https://cjdropshipping.com/search/lamp.html",
    site="cj",
    reference="crawl-1-search-2-1",
    postback_url=f"https://menus.example/api/crawl/webhook/{SECRET}",
)
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


class Service:
    """Answers as it is told, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Request] = []
        self.answer = Response(200, b'{"request_id": "r-1"}')
        self.server = HttpServer(self._take)

    async def _take(self, request: Request) -> Response:
        self.asked.append(request)
        return self.answer

    def says(self, status: int, body: Any, **headers: str) -> None:
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.answer = Response(status, text, headers={name.replace("_", "-"): value for name, value in headers.items()})


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    one = Service()
    await one.server.start()
    yield one
    await one.server.close()


@pytest.fixture
async def serpwatch(service: Service) -> AsyncIterator[SerpWatch]:
    one = SerpWatch(TOKEN, address=f"{service.server.url}/", seconds=5, clock=ManualClock(NOW))
    yield one
    await one.close()


async def test_an_order(service: Service, serpwatch: SerpWatch) -> None:
    assert await serpwatch.submit(ORDER) == "r-1"
    (asked,) = service.asked
    assert (asked.method, asked.path, asked.headers["authorization"]) == ("POST", "/api/v2/browser", f"Bearer {TOKEN}")
    assert json.loads(asked.body) == {
        "url": ORDER.url,
        "device": "desktop",
        "postback_url": ORDER.postback_url,
        "post_id": "crawl-1-search-2-1",
    }
    service.says(201, {"id": 77})
    abroad = Order(
        url=ORDER.url, site="cj", reference="crawl-1-search-2-2", postback_url=ORDER.postback_url, country="de"
    )
    assert await serpwatch.submit(abroad) == "77"
    assert json.loads(service.asked[1].body)["iso_code"] == "DE"
    assert TOKEN not in repr(serpwatch)


@pytest.mark.parametrize("body", [b"", b"taken", b"[]", b'{"request_id": null}', b"\xff", b"[" * 60_000])
async def test_an_order_that_was_taken_without_an_id_is_not_made_again(
    service: Service, serpwatch: SerpWatch, body: bytes
) -> None:
    service.says(202, body)
    assert await serpwatch.submit(ORDER) is None


@pytest.mark.parametrize(
    ("status", "body", "headers", "said", "retry_after", "final"),
    [
        (401, {"detail": "Could not validate credentials"}, {}, "SERPWATCH_TOKEN", None, False),
        (403, b"no", {}, "SERPWATCH_TOKEN", None, False),
        (400, {"detail": f"bad postback_url {ORDER.postback_url}"}, {}, "HTTP 400: bad postback_url …", None, True),
        (422, {"detail": [{"loc": ["body", "url"], "msg": "not a URL", "input": ORDER.postback_url}]}, {},
         "HTTP 422: url: not a URL", None, True),
        (429, {"code": "ThrottlingException", "message": "Slow down", "retry_after": 12.5}, {},
         "ThrottlingException: Slow down", 12.5, False),
        (429, {}, {"Retry_After": "30"}, "HTTP 429", 30.0, False),
        (429, b"", {"Retry_After": "Sun, 22 Nov 2026 12:01:00 GMT"}, "HTTP 429", 60.0, False),
        (429, b"", {"X_RateLimit_Remaining": "0", "X_RateLimit_Reset": str(int(NOW.timestamp()) + 90)}, "HTTP 429", 90.0, False),
        (429, b"", {"X_RateLimit_Remaining": "0", "X_RateLimit_Reset": "45"}, "HTTP 429", 45.0, False),
        (429, {"retry_after": "soon"}, {"Retry_After": "later"}, "HTTP 429", None, False),
        (429, {"retry_after": -1}, {}, "HTTP 429", None, False),
        (503, {"detail": "busy"}, {"Retry_After": "9"}, "HTTP 503: busy", 9.0, False),
        (500, b"<html>" + b"x" * 100_000, {}, "HTTP 500", None, False),
        (402, {"detail": f"no credits left for {TOKEN}"}, {}, "no credits left for …", None, False),
        (302, b"", {"Location": "http://127.0.0.1:1/"}, "SERPWATCH_URL", None, False),
        (200, {"success": False, "error": f"the queue is full {SECRET}\n!"}, {}, "the queue is full … !", None, False),
    ],
)  # fmt: skip
async def test_refusals(
    service: Service, serpwatch: SerpWatch, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str],
    status: int, body: Any, headers: dict[str, str], said: str, retry_after: float | None, final: bool,
) -> None:  # fmt: skip
    service.says(status, body, **headers)
    with caplog.at_level(logging.DEBUG), pytest.raises(OrderRefused) as caught:
        await serpwatch.submit(ORDER)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 300
    assert (caught.value.retry_after, caught.value.final) == (retry_after, final)
    shown = str(caught.value) + caplog.text + "".join(capsys.readouterr())
    assert TOKEN not in shown
    assert SECRET not in shown


async def test_whoever_does_not_answer(service: Service) -> None:
    service.answer = Response(wait=30)
    address = service.server.url
    slow = SerpWatch(TOKEN, address=address, seconds=0.1)
    with pytest.raises(OrderRefused, match=r"no answer within 0\.1 s"):
        await slow.submit(ORDER)
    await slow.close()
    await service.server.close()
    gone = SerpWatch(TOKEN, address=address)
    with pytest.raises(OrderRefused, match="cannot be reached") as caught:
        await gone.submit(ORDER)
    assert not caught.value.final
    await gone.close()


@pytest.mark.parametrize("token", ["", "a b", "a\nb", "tök"])
def test_tokens_that_cannot_be(token: str) -> None:
    with pytest.raises(Refused, match="SERPWATCH_TOKEN") as caught:
        SerpWatch(token)
    assert not token or token not in str(caught.value)


READER = SerpWatch(TOKEN)
PAGE = "<html>ü</html>"
RESULT = {
    "success": True,
    "url": "https://x",
    "html": PAGE,
    "post_id": "crawl-1-search-2-1",
    "request_id": "r",
    "error": None,
}
READ = Delivery(reference="crawl-1-search-2-1", ok=True, html=PAGE.encode(), request_id="r")


@pytest.mark.parametrize("body", [RESULT, [RESULT], {"status": "ok", "results": [RESULT]}])
def test_shapes_of_webhooks(body: Any) -> None:
    assert READER.read_webhook(body) == [READ]


def test_a_webhook_of_nothing_and_of_several() -> None:
    assert READER.read_webhook([]) == READER.read_webhook({"status": "ok", "results": []}) == []
    second = {**RESULT, "post_id": "crawl-1-product-3-4", "success": False, "html": None, "error": "blocked\x00\nby it"}
    assert READER.read_webhook({"results": [RESULT, second, RESULT]}) == [
        READ,
        Delivery(reference="crawl-1-product-3-4", ok=False, error="blocked by it", request_id="r"),
        READ,
    ]


def one(**changed: Any) -> Delivery:
    (read,) = READER.read_webhook({"post_id": "crawl-1-search-2-1", **changed})
    return read


def test_pages_inline_and_by_address() -> None:
    address = "https://serpengine.hel1.your-objectstorage.com/a/b.html?X-Signature=1%2F2"
    assert one(success=True, html=f" {address}\n").html_url == address
    packed = gzip.compress(b"<html>")
    assert one(success=True, html=b64encode(packed).decode()).html == packed
    for text in ("https://x.example/a b", "http://", "https://x/<p>", "Gone", "https://x/" + "a" * 2000):
        assert one(success=True, html=text).html == text.encode()
        assert one(success=True, html=text).html_url is None
    assert one(success=True, html="\ud800<p>").html == b"?<p>"


def test_failures_say_why() -> None:
    assert one(success=False).error == "no reason given"
    assert one(success=True, html="  ").error == "no page included"
    assert one(success=False, error={"message": "timeout"}, html=PAGE) == Delivery(
        reference="crawl-1-search-2-1", ok=False, error="timeout"
    )
    assert one(error="x" * 9999).error == "x" * 300
    assert one(html=PAGE).ok
    assert one(html=PAGE, request_id=5).request_id == "5"
    assert not one(html=PAGE, error="but").ok


@pytest.mark.parametrize(
    "body",
    [
        None, 5, "crawl-1-search-2-1", {}, [RESULT, None], {"results": {}}, {"results": None}, {"results": [[RESULT]]},
        {**RESULT, "post_id": None}, {**RESULT, "post_id": ""}, {**RESULT, "post_id": "x" * 201}, {**RESULT, "html": 5},
        {**RESULT, "success": "yes"}, [RESULT] * 1001,
    ],
)  # fmt: skip
def test_bodies_that_are_no_webhook(body: Any) -> None:
    with pytest.raises(BadWebhook):
        READER.read_webhook(body)


whatever = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(["results", "success", "post_id", "html", "error", "request_id", "message"]), inner
        )
    ),
    max_leaves=12,
)


@given(whatever)
def test_whatever_is_posted(body: Any) -> None:
    try:
        read = READER.read_webhook(body)
    except BadWebhook:
        return
    assert all(delivery.ok == (delivery.error is None) for delivery in read)
