"""One request through one proxy, over real sockets: the way it takes, what it sends, and what each fault looks like."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
from pathlib import Path

import psutil
import pytest

from menuwatch.fetch.classify import Blame, Classification, Verdict, classify_error
from menuwatch.fetch.transport import Exchange, Transport, proxy_options, with_params
from menuwatch.proxies.model import Proxy
from menuwatch.sim.proxies import Fault, ProxyFarm
from tests.fetch.conftest import Opener, as_row
from tests.fetch.target import NAME, Reply, Target

HTTP, SOCKS = 0, 1
BOTH = pytest.mark.parametrize("index", [HTTP, SOCKS], ids=["http", "socks5"])


def judged(exchange: Exchange) -> Classification:
    assert exchange.error is not None, f"answered with {exchange.answer}"
    return classify_error(exchange.error)


# --- the way ---


@BOTH
async def test_a_name_that_only_the_proxy_knows_is_reached(
    index: int, farm: ProxyFarm, target: Target, transport: Opener
) -> None:
    exchange = await transport(index).send("GET", target.url("/menu"))
    assert exchange.answer is not None
    assert (exchange.answer.status, exchange.answer.body) == (200, b'{"ok": true}')
    assert exchange.answer.headers["content-type"] == "application/json"
    assert [seen.proxy for seen in target.seen] == [index]
    assert [count.tunnels for count in farm.counts()] == [int(n == index) for n in range(4)]


async def only_socket_is_the_proxys(index: int, farm: ProxyFarm, target: Target, transport: Transport) -> None:
    """Looks at every socket of this process while a request waits for its answer."""
    target.replies(Reply(how="hang"))
    asking = asyncio.ensure_future(transport.send("GET", target.url()))
    await asyncio.wait_for(target.arrived.wait(), 5)
    sockets = [c for c in psutil.Process().net_connections(kind="inet") if c.raddr]
    asking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asking
    assert len([c for c in sockets if c.raddr.port == farm.infos[index].port]) == 1
    # The target's only peer is the proxy's own end of the tunnel.
    assert target.peers == [c.laddr.port for c in sockets if c.raddr.port == target.port]
    assert [seen.proxy for seen in target.seen] == [index]
    assert [c for c in sockets if not c.raddr.ip.startswith(("127.", "::1", "::ffff:127."))] == []


@pytest.fixture
def hostile_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables that ask for a direct way, and for another proxy."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "*")
    for name in ("http_proxy", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")


@BOTH
@pytest.mark.usefixtures("hostile_environment")
async def test_a_fetch_opens_no_socket_but_the_proxys(
    index: int, farm: ProxyFarm, target: Target, transport: Opener
) -> None:
    await only_socket_is_the_proxys(index, farm, target, transport(index))


@BOTH
@pytest.mark.usefixtures("hostile_environment")
async def test_a_fetch_over_tls_opens_no_socket_but_the_proxys(
    index: int, farm: ProxyFarm, secure_target: Target, transport: Opener, certificate: tuple[Path, Path]
) -> None:
    await only_socket_is_the_proxys(index, farm, secure_target, transport(index, ca_file=certificate[0]))


@BOTH
@pytest.mark.usefixtures("hostile_environment")
async def test_behind_a_dead_proxy_the_target_sees_nothing(
    index: int, farm: ProxyFarm, target: Target, transport: Opener
) -> None:
    await farm.fault(index, "dead")
    # By address too, which needs no proxy to be resolved.
    for url in (target.url(), f"http://127.0.0.1:{target.port}/"):
        assert judged(await transport(index).send("GET", url)).verdict is Verdict.PROXY_DOWN
    assert target.peers == []


async def test_an_http_proxy_is_asked_for_a_tunnel_even_for_a_plain_target(
    farm: ProxyFarm, target: Target, transport: Opener
) -> None:
    await transport(HTTP).send("GET", target.url("/a"))
    # A proxy that was not asked for a tunnel would add `Connection: close` (see the simulator).
    assert not {"connection", "upgrade", "http2-settings", "via"} & {name.lower() for name in target.seen[0].names}
    assert farm.counts()[HTTP].bytes_up > 0


def test_socks_names_are_resolved_at_the_proxy_and_no_option_lets_a_request_out_directly(farm: ProxyFarm) -> None:
    for info in farm.infos:
        options = {str(getattr(key, "name", key)): value for key, value in proxy_options(as_row(info)).items()}
        scheme = "socks5h" if info.protocol == "socks5" else "http"
        assert options["PROXY"] == f"{scheme}://127.0.0.1:{info.port}"
        assert options["NOPROXY"] == ""
        assert options["HTTPPROXYTUNNEL"] == 1


@pytest.mark.parametrize(
    "url", ["ftp://menus.invalid/", "file:///etc/hostname", "http://u:p@menus.invalid/", "menus", ""]
)
async def test_other_addresses_are_not_asked_for(url: str, farm: ProxyFarm, target: Target, transport: Opener) -> None:
    assert judged(await transport(HTTP).send("GET", url)).verdict is Verdict.CLIENT_BUG
    assert farm.counts()[HTTP].connections == 0


@BOTH
async def test_redirects_are_not_followed(index: int, farm: ProxyFarm, target: Target, transport: Opener) -> None:
    target.replies(Reply(302, headers={"Location": f"http://{NAME}:{target.port}/elsewhere"}))
    exchange = await transport(index).send("GET", target.url())
    assert exchange.answer is not None
    assert exchange.answer.status == 302
    assert [seen.path for seen in target.seen] == ["/"]


# --- faults ---

FAULTS: list[tuple[Fault, Verdict, Blame]] = [
    ("dead", Verdict.PROXY_DOWN, Blame.PROXY),
    ("auth", Verdict.PROXY_CONFIG, Blame.PROXY),
    ("connect_403", Verdict.PROXY_DOWN, Blame.PROXY),
    ("connect_502", Verdict.PROXY_DOWN, Blame.PROXY_OR_TARGET),
    ("reset", Verdict.PROXY_DOWN, Blame.PROXY),
    ("hang", Verdict.PROXY_DOWN, Blame.PROXY_OR_TARGET),
    ("cut", Verdict.PATH_RESET, Blame.NONE),
]


@BOTH
@pytest.mark.parametrize(("kind", "verdict", "blame"), FAULTS, ids=[kind for kind, _, _ in FAULTS])
async def test_a_fault_of_the_proxy_is_known_for_what_it_is(
    kind: Fault, verdict: Verdict, blame: Blame, index: int, farm: ProxyFarm, target: Target, transport: Opener
) -> None:
    target.replies(Reply(body=b"x" * 5000))
    await farm.fault(index, kind, after_bytes=1000)
    classification = judged(await transport(index, timeout=0.5).send("GET", target.url()))
    assert (classification.verdict, classification.blame) == (verdict, blame)


async def test_a_rate_limit_of_the_provider_is_the_proxys_not_the_targets(
    farm: ProxyFarm, target: Target, transport: Opener
) -> None:
    await farm.fault(HTTP, "connect_429")
    classification = judged(await transport(HTTP).send("GET", target.url()))
    assert (classification.verdict, classification.blame) == (Verdict.PROXY_DOWN, Blame.PROXY)


async def test_a_proxy_whose_name_is_not_known_is_down(farm: ProxyFarm, transport: Opener) -> None:
    broken = transport(HTTP)
    broken._options.update(proxy_options(_moved(as_row(farm.infos[HTTP]), "nowhere.invalid")))
    classification = judged(await broken.send("GET", "http://menus.invalid/"))
    assert (classification.verdict, classification.blame) == (Verdict.PROXY_DOWN, Blame.PROXY)


def _moved(proxy: Proxy, host: str) -> Proxy:
    return Proxy(**{name: getattr(proxy, name) for name in Proxy.__slots__} | {"host": host})


@BOTH
async def test_a_wrong_password_is_a_matter_of_configuration_and_is_never_repeated_to_anyone(
    index: int, farm: ProxyFarm, target: Target, transport: Opener
) -> None:
    wrong = transport(index, password="S3cret/@:pass")
    exchange = await wrong.send("GET", target.url())
    classification = judged(exchange)
    assert classification.verdict is Verdict.PROXY_CONFIG
    assert "S3cret" not in f"{exchange!r} {classification!r} {wrong!r} {wrong.identity!r}"
    assert farm.counts()[index].refused_logins == 1
    assert target.peers == []


@BOTH
@pytest.mark.parametrize(
    ("reply", "verdict", "blame"),
    [
        (Reply(how="hang"), Verdict.TARGET_DOWN, Blame.TARGET),
        (Reply(how="short", body=b"x" * 1000), Verdict.PATH_RESET, Blame.NONE),
        (Reply(how="close"), Verdict.PATH_RESET, Blame.NONE),
        (Reply(body=b"not gzip", headers={"Content-Encoding": "gzip"}), Verdict.PATH_RESET, Blame.NONE),
    ],
    ids=["hang", "short", "close", "garbled"],
)
async def test_what_the_target_does_is_not_the_proxys_fault(
    reply: Reply, verdict: Verdict, blame: Blame, index: int, target: Target, transport: Opener
) -> None:
    target.replies(reply)
    classification = judged(await transport(index, timeout=0.5).send("GET", target.url()))
    assert (classification.verdict, classification.blame) == (verdict, blame)


@BOTH
async def test_a_target_that_is_not_there_leaves_the_blame_open(index: int, farm: ProxyFarm, transport: Opener) -> None:
    for url in (f"http://{NAME}:1/", "http://unknown.invalid/"):
        classification = judged(await transport(index).send("GET", url))
        assert (classification.verdict, classification.blame) == (Verdict.PROXY_DOWN, Blame.PROXY_OR_TARGET)


# --- TLS ---


@BOTH
async def test_a_certificate_that_nobody_signed_is_refused_and_the_request_never_sent(
    index: int, secure_target: Target, transport: Opener
) -> None:
    classification = judged(await transport(index).send("GET", secure_target.url()))
    assert (classification.verdict, classification.blame) == (Verdict.TLS_UNTRUSTED, Blame.PROXY_OR_TARGET)
    assert secure_target.seen == []


@BOTH
async def test_a_trusted_certificate_is_accepted_and_a_broken_tunnel_is_nobodys_fault(
    index: int, farm: ProxyFarm, secure_target: Target, transport: Opener, certificate: tuple[Path, Path]
) -> None:
    ca_file = certificate[0]
    exchange = await transport(index, ca_file=ca_file).send("POST", secure_target.url("/q"), json={"a": "é"})
    assert exchange.answer is not None
    assert secure_target.seen[0].body == '{"a":"é"}'.encode()
    secure_target.replies(*[Reply(body=b"x" * 50_000)] * 2)
    for after_bytes in (300, 20_000):  # within the handshake, and within the body
        await farm.fault(index, "cut", after_bytes=after_bytes)
        classification = judged(await transport(index, ca_file=ca_file).send("GET", secure_target.url()))
        assert (classification.verdict, classification.blame) == (Verdict.PATH_RESET, Blame.NONE)


# --- size ---


@BOTH
@pytest.mark.parametrize("declared", [True, False])
async def test_an_answer_beyond_the_limit_is_given_up(
    declared: bool, index: int, target: Target, transport: Opener
) -> None:
    headers = {} if declared else {"Content-Length": "5000000"}
    target.replies(Reply(body=b"x" * 200_000, headers=headers))
    classification = judged(await transport(index, max_bytes=100_000).send("GET", target.url()))
    assert classification.verdict is Verdict.TOO_LARGE
    assert "FETCH_MAX_BYTES" in classification.reason


async def test_a_decompression_bomb_is_given_up_by_its_decoded_size(target: Target, transport: Opener) -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    assert len(bomb) < 100_000
    target.replies(Reply(body=bomb, headers={"Content-Encoding": "gzip"}))
    assert judged(await transport(HTTP, max_bytes=1_000_000).send("GET", target.url())).verdict is Verdict.TOO_LARGE


# --- what is sent ---


async def test_cookies_stay_with_their_identity(target: Target, transport: Opener) -> None:
    target.script = lambda seen: Reply(headers={"Set-Cookie": f"id={seen.proxy}; Path=/"})
    first, second = transport(HTTP), transport(2)
    for each in (first, first, second, second):
        await each.send("GET", target.url())
    cookies = [[value for name, value in seen.headers if name == "Cookie"] for seen in target.seen]
    assert cookies == [[], ["id=0"], [], ["id=2"]]


def test_parameters_are_encoded_as_a_browser_does() -> None:
    # What encodeURIComponent('{"a":"é b",x:(1)!*}') gives in a browser.
    encoded = "%7B%22a%22%3A%22%C3%A9%20b%22%2Cx%3A(1)!*%7D"
    assert with_params("http://h/p", {"v": '{"a":"é b",x:(1)!*}'}) == f"http://h/p?v={encoded}"
    assert with_params("http://h/p?q=1", {"v": "2"}) == "http://h/p?q=1&v=2"
    assert with_params("http://h/p?q=1", None) == "http://h/p?q=1"


async def test_parameters_arrive_as_they_were_encoded(target: Target, transport: Opener) -> None:
    await transport(HTTP).send("GET", target.url("/g"), params={"variables": '{"page":0,"é":[1]}'})
    assert target.seen[0].path == "/g?variables=%7B%22page%22%3A0%2C%22%C3%A9%22%3A%5B1%5D%7D"


@BOTH
async def test_sessions_that_are_closed_leave_no_socket(
    index: int, farm: ProxyFarm, target: Target, transport: Opener
) -> None:
    for _ in range(10):
        each = transport(index)
        await each.send("GET", target.url())
        await each.close()
    port = farm.infos[index].port
    left = [
        c for c in psutil.Process().net_connections() if c.raddr and c.raddr[1] == port and c.status == "ESTABLISHED"
    ]
    assert left == []
