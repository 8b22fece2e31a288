"""Every fault that is known, produced over real sockets, through a proxy of each protocol: the verdict, and who is blamed.

What is expected is research/crawl.md's table (section 2.4) and the meaning of each fault, written down here by hand. Where blame is
`proxy_or_target` the two look the same from here: other proxies decide.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme

from menuwatch.fetch.classify import HEAD, Classification, RequestOutcome, classify
from menuwatch.fetch.transport import Exchange, Transport
from menuwatch.sim.fault_target import BOMB_BYTES, FaultTarget, TargetFault, bomb
from menuwatch.sim.proxies import Fault as ProxyFault
from menuwatch.sim.proxies import ProxyFarm, start_proxies
from tests.fetch.conftest import Opener
from tests.fetch.target import NAME, Reply, Target, serving

PROTOCOLS = ("http", "https", "socks5")
TUNNELS = ("http", "https")
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
PATIENCE = 0.5
"""Seconds after which the client gives up, where it is kept waiting."""

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Authorities:
    """The authority that the client trusts, as a file, and certificates: the proxy's, the target's, and such as nobody trusts."""

    ca_file: Path
    trusted: trustme.CA
    foreign: trustme.CA

    def of(self, name: str, *, foreign: bool = False) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        (self.foreign if foreign else self.trusted).issue_cert(name).configure_cert(context)
        return context


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> Authorities:
    made = Authorities(tmp_path_factory.mktemp("ca") / "ca.pem", trustme.CA(), trustme.CA())
    made.trusted.cert_pem.write_to_path(str(made.ca_file))
    return made


@pytest.fixture
async def farm(authorities: Authorities) -> AsyncIterator[ProxyFarm]:
    """A proxy of each protocol."""
    started = await start_proxies(
        len(PROTOCOLS),
        seed=5,
        protocols=PROTOCOLS,
        names={NAME: "127.0.0.1"},
        tls=authorities.of("127.0.0.1"),
        mitm=authorities.of(NAME, foreign=True),
    )
    yield started
    await started.close()


@pytest.fixture
async def target(farm: ProxyFarm, authorities: Authorities) -> AsyncIterator[Target]:
    """A web server in good health, behind TLS."""
    async with serving(farm, authorities.of(NAME)) as started:
        yield started


@asynccontextmanager
async def faulty_target(kind: TargetFault, context: ssl.SSLContext | None) -> AsyncIterator[FaultTarget]:
    made = FaultTarget(kind, context)
    await made.start()
    try:
        yield made
    finally:
        await made.close()


@asynccontextmanager
async def moved(transport: Transport, authorities: Authorities, **where: object) -> AsyncIterator[Transport]:
    """The same identity, its proxy entered at another address."""
    identity = replace(transport.identity, proxy=replace(transport.identity.proxy, **where))  # type: ignore[arg-type]
    made = Transport(identity, timeout_seconds=PATIENCE, max_bytes=1_000_000, ca_file=str(authorities.ca_file))
    try:
        yield made
    finally:
        await made.close()


def judged(exchange: Exchange) -> Classification:
    answer = exchange.answer
    if answer is None:
        assert exchange.error is not None
        return classify(RequestOutcome(now=NOW, error=exchange.error))
    start, size = answer.body[:HEAD], len(answer.body)
    return classify(RequestOutcome(now=NOW, status=answer.status, headers=answer.headers, start=start, size=size))


def expect(exchange: Exchange, outcome: str) -> Classification:
    classification = judged(exchange)
    assert f"{classification.verdict} {classification.blame}" == outcome, (
        f"{classification.reason}: {exchange.error or exchange.answer}"
    )
    assert classification.reason
    return classification


# --- the proxy's faults ---

DOWN, OPEN = "proxy_down proxy", "proxy_down proxy_or_target"
OF_PROXIES: list[tuple[ProxyFault, tuple[str, ...], str]] = [
    ("dead", PROTOCOLS, DOWN),
    ("auth", PROTOCOLS, "proxy_config proxy"),
    # What a provider says of our account with it, or of its own state.
    ("connect_403", TUNNELS, DOWN),
    ("connect_429", TUNNELS, DOWN),
    # Proxies answer so too when it is the target that does not answer them.
    ("connect_502", TUNNELS, OPEN),
    ("connect_503", TUNNELS, OPEN),
    ("connect_504", TUNNELS, OPEN),
    ("socks_failure", ("socks5",), DOWN),
    ("socks_ruleset", ("socks5",), DOWN),
    ("socks_network_unreachable", ("socks5",), OPEN),
    ("socks_host_unreachable", ("socks5",), OPEN),
    ("socks_refused", ("socks5",), OPEN),
    ("socks_ttl", ("socks5",), OPEN),
    ("socks_command", ("socks5",), DOWN),
    ("socks_address_type", ("socks5",), DOWN),
    # A proxy that waits for a target that swallows every connection hangs, too.
    ("hang", PROTOCOLS, OPEN),
    ("reset", PROTOCOLS, DOWN),
    ("close", PROTOCOLS, DOWN),
    ("garbage", TUNNELS, DOWN),
    ("garbage", ("socks5",), "proxy_config proxy"),
    ("cut", PROTOCOLS, "path_reset none"),
    ("mitm", PROTOCOLS, "tls_untrusted proxy_or_target"),
]


@pytest.mark.parametrize(
    ("fault", "protocol", "outcome"),
    [(fault, protocol, outcome) for fault, protocols, outcome in OF_PROXIES for protocol in protocols],
)
async def test_a_proxys_fault(
    fault: ProxyFault, protocol: str, outcome: str, farm: ProxyFarm, target: Target, transport: Opener,
    authorities: Authorities,
) -> None:  # fmt: skip
    index = PROTOCOLS.index(protocol)
    target.replies(Reply(body=b"[" + b"1," * 50_000 + b"1]"))
    asking = transport(index, timeout=PATIENCE if fault == "hang" else 10, ca_file=authorities.ca_file)
    await farm.fault(index, fault, after_bytes=20_000)
    exchange = await asking.send("GET", target.url())
    expect(exchange, outcome)
    assert exchange.error is not None
    assert exchange.error.sent is (fault == "cut"), (
        "nothing of a request goes to a proxy that did not lead to its target"
    )
    assert len(target.seen) == (fault == "cut")
    # Once mended it serves, so nothing but the fault was in the way.
    await farm.fault(index, None)
    expect(await asking.send("GET", target.url()), "ok none")


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_proxy_that_is_not_there(
    protocol: str, farm: ProxyFarm, target: Target, transport: Opener, authorities: Authorities
) -> None:
    asking = transport(PROTOCOLS.index(protocol))
    async with moved(asking, authorities, host="nowhere.invalid") as broken:
        expect(await broken.send("GET", target.url()), DOWN)
    with swallowing() as port:
        async with moved(asking, authorities, port=port) as broken:
            expect(await broken.send("GET", target.url()), DOWN)
    assert target.peers == []


@contextlib.contextmanager
def swallowing() -> Iterator[int]:
    """A port whose queue is full: connections to it are neither taken nor refused, as where packets are dropped."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


async def test_a_proxy_with_a_certificate_that_nobody_trusts(
    farm: ProxyFarm, target: Target, transport: Opener
) -> None:
    expect(await transport(1).send("GET", target.url()), "tls_untrusted proxy")
    assert target.peers == []


@pytest.mark.parametrize("kind", ["hang", "tls_reset", "tls_alert"])
async def test_a_proxy_that_fails_in_its_own_tls(
    kind: TargetFault, farm: ProxyFarm, target: Target, transport: Opener, authorities: Authorities
) -> None:
    async with faulty_target(kind, authorities.of("127.0.0.1")) as proxy, moved(
        transport(1), authorities, port=proxy.port
    ) as asking:  # fmt: skip
        expect(await asking.send("GET", target.url()), DOWN)
    assert target.peers == []


@pytest.mark.parametrize(("entered", "really"), list(itertools.permutations(PROTOCOLS, 2)))
async def test_a_proxy_entered_with_the_wrong_protocol_is_at_fault_and_learns_nothing_of_the_request(
    entered: str, really: str, farm: ProxyFarm, target: Target, transport: Opener, authorities: Authorities
) -> None:
    port = farm.infos[PROTOCOLS.index(really)].port
    async with moved(transport(PROTOCOLS.index(entered)), authorities, port=port) as asking:
        classification = judged(await asking.send("GET", target.url()))
    assert classification.verdict in ("proxy_down", "proxy_config")
    assert classification.blame in ("proxy", "proxy_or_target")
    assert target.peers == []


async def test_what_went_wrong_before_is_not_held_against_the_next_request(
    farm: ProxyFarm, transport: Opener, authorities: Authorities
) -> None:
    """Curl handles are used again, and with them what they remember."""
    for index in range(3):
        asking = transport(index, timeout=PATIENCE, ca_file=authorities.ca_file)
        async with faulty_target("tls_reset", authorities.of(NAME)) as broken:
            expect(await asking.send("GET", broken.url(NAME)), "path_reset none")
            await farm.fault(index, "hang")
            expect(await asking.send("GET", broken.url(NAME)), OPEN)


# --- the target's faults ---

OF_TARGETS: list[tuple[TargetFault, str]] = [
    ("closed", OPEN),
    ("hang", "target_down target"),
    ("tls_reset", "path_reset none"),
    ("tls_alert", "path_reset none"),
    ("no_answer", "target_down target"),
    ("gone", "path_reset none"),
    ("reset", "path_reset none"),
    ("truncated", "path_reset none"),
    ("endless", "target_down target"),
    ("no_http", "target_down target"),
    ("garbled", "path_reset none"),
    ("large", "too_large target"),
    ("large_chunked", "too_large target"),
    ("large_headers", "too_large target"),
    ("bomb", "too_large target"),
    ("calm", "rate_limited none"),
    ("calm_goaway", "rate_limited none"),
    ("refused_stream", "rate_limited none"),
    ("goaway", "rate_limited none"),
    ("stream_error", "path_reset none"),
]
IN_PLAIN = ("closed", "no_answer", "gone", "reset", "truncated", "no_http", "large_chunked", "bomb")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("kind", "secure", "outcome"),
    [(kind, True, outcome) for kind, outcome in OF_TARGETS]
    + [(kind, False, outcome) for kind, outcome in OF_TARGETS if kind in IN_PLAIN],
)
async def test_a_targets_fault(
    kind: TargetFault, secure: bool, outcome: str, protocol: str, transport: Opener, authorities: Authorities
) -> None:
    waits = kind in ("hang", "no_answer", "endless")
    asking = transport(
        PROTOCOLS.index(protocol), timeout=PATIENCE if waits else 10, max_bytes=500_000, ca_file=authorities.ca_file
    )
    async with faulty_target(kind, authorities.of(NAME) if secure else None) as target:
        expect(await asking.send("GET", target.url(NAME)), outcome)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_name_that_the_proxy_does_not_know(protocol: str, transport: Opener, authorities: Authorities) -> None:
    asking = transport(PROTOCOLS.index(protocol), ca_file=authorities.ca_file)
    expect(await asking.send("GET", "https://unknown.invalid/"), OPEN)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("flaw", ["unknown authority", "another name"])
async def test_a_certificate_that_is_wrong_for_everybody(
    flaw: str, protocol: str, transport: Opener, authorities: Authorities
) -> None:
    context = authorities.of(NAME, foreign=True) if flaw == "unknown authority" else authorities.of("other.invalid")
    asking = transport(PROTOCOLS.index(protocol), ca_file=authorities.ca_file)
    async with faulty_target("gone", context) as target:
        exchange = await asking.send("POST", target.url(NAME), json={"secret": 1})
        expect(exchange, "tls_untrusted proxy_or_target")
        assert exchange.error is not None
        assert exchange.error.sent is False


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_an_answer_that_comes_in_drops_is_out_of_time(
    protocol: str, farm: ProxyFarm, transport: Opener, authorities: Authorities
) -> None:
    """Whose drops they are cannot be seen from here; the proxy had led to the target."""
    index = PROTOCOLS.index(protocol)
    async with serving(farm) as target:
        await farm.fault(index, "slow", after_bytes=10)
        asking = transport(index, timeout=PATIENCE, ca_file=authorities.ca_file)
        expect(await asking.send("GET", target.url()), "target_down target")


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_redirect_is_an_answer_and_nothing_else_is_asked(
    protocol: str, farm: ProxyFarm, transport: Opener, authorities: Authorities
) -> None:
    index = PROTOCOLS.index(protocol)
    async with faulty_target("redirect", authorities.of(NAME)) as target:
        exchange = await transport(index, ca_file=authorities.ca_file).send("GET", target.url(NAME))
        expect(exchange, "ok none")
        assert exchange.answer is not None
        assert (exchange.answer.status, exchange.answer.headers["location"]) == (302, "http://192.0.2.1/")
        assert target.seen == farm.counts()[index].tunnels == farm.counts()[index].connections == 1


async def test_a_connection_turned_away_in_http2_is_tried_five_times_more_by_libcurl_itself(
    transport: Opener, authorities: Authorities
) -> None:
    """No option of libcurl's prevents it. It is why such a fault is taken as a wish to be asked less."""
    async with faulty_target("calm_goaway", authorities.of(NAME)) as target:
        exchange = await transport(0, ca_file=authorities.ca_file).send("GET", target.url(NAME))
        assert exchange.error is not None
        assert target.seen == exchange.error.connections == 6
    async with faulty_target("calm", authorities.of(NAME)) as target:
        await transport(0, ca_file=authorities.ca_file).send("GET", target.url(NAME))
        assert target.seen == 1


# --- whole answers ---

CHALLENGE = b'<html><title>Just a moment...</title><script src="/cdn-cgi/challenge-platform/h/b/x"></script></html>'
ANSWERS: list[tuple[Reply, str]] = [
    (Reply(200, b'{"data":{"a":1}}'), "ok none"),
    (Reply(404, b"not here"), "ok none"),
    (Reply(403), "blocked identity"),
    (Reply(403, CHALLENGE), "challenge identity"),
    (Reply(200, CHALLENGE), "challenge identity"),
    (Reply(403, headers={"X-DataDome": "protected"}), "challenge identity"),
    (Reply(403, headers={"cf-mitigated": "challenge"}), "challenge identity"),
    (Reply(429, headers={"Retry-After": "31536000"}), "rate_limited none"),
    (Reply(503, headers={"Retry-After": "Sun, 01 Mar 2026 12:30:00 GMT"}), "rate_limited none"),
    (Reply(503), "target_down target"),
    (Reply(500), "target_down target"),
    (Reply(400), "client_bug us"),
    (Reply(200, b""), "empty_suspect target"),
    (Reply(200, b'{"data":null}'), "empty_suspect target"),
    (Reply(200, b"<html>Our shop</html>"), "schema_changed target"),
]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_whole_answers(protocol: str, target: Target, transport: Opener, authorities: Authorities) -> None:
    asking = transport(PROTOCOLS.index(protocol), ca_file=authorities.ca_file)
    waits = []
    for reply, outcome in ANSWERS:
        target.replies(reply)
        classification = expect(await asking.send("GET", target.url()), outcome)
        if classification.retry_after is not None:
            waits.append(classification.retry_after)
    assert waits == [31_536_000.0, 1800.0], "a year is honoured as a year"


# --- memory ---


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_bomb_costs_little_memory(
    protocol: str, farm: ProxyFarm, target: Target, authorities: Authorities
) -> None:
    packed = bomb()
    assert len(packed) < BOMB_BYTES / 900
    max_bytes = 2_000_000
    async with faulty_target("bomb", authorities.of(NAME)) as bombing:
        task = {
            "proxy": asdict(farm.infos[PROTOCOLS.index(protocol)]),
            "ca_file": str(authorities.ca_file),
            "small": target.url(),
            "large": bombing.url(NAME),
            "max_bytes": max_bytes,
        }
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.fetch.bomb_child", cwd=ROOT,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, _ = await child.communicate(json.dumps(task).encode())
    found = json.loads(out)
    assert found["verdict"] == "too_large"
    assert found["grown"] < 8 * max_bytes, f"{found['grown']:,} bytes for an answer of at most {max_bytes:,}"
