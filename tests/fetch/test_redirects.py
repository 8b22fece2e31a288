"""Redirects of a session, over real proxies: as a browser follows them (RFC 9110 section 15.4), and only to where it was sent."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from menuwatch.core.errors import Permanent
from menuwatch.db.pool import Pool
from menuwatch.fetch.robots import Policy
from menuwatch.fetch.session import FetchSession
from menuwatch.sim.proxies import ProxyFarm
from tests.fetch.target import NAME, Reply, Seen, Target, serving
from tests.fetch.test_session import Bench

OTHER = "images.invalid"


@pytest.fixture
async def bench(pool: Pool, farm: ProxyFarm, certificate: tuple[Path, Path]) -> AsyncIterator[Bench]:
    made = Bench(pool, farm, str(certificate[0]))
    await made.register(0, 1)
    yield made
    await made.rotator.close()


def session(bench: Bench, *hosts: str) -> AbstractAsyncContextManager[FetchSession]:
    return bench.rotator.open(task_id=5, dispensary_id=6, state="AZ", hosts=hosts)


def to(location: str, status: int = 302) -> Reply:
    return Reply(status, b"moved", {"Location": location})


def story(target: Target) -> list[tuple[str, str, bytes]]:
    return [(seen.method, seen.path, seen.body) for seen in target.seen]


@pytest.mark.parametrize(
    ("method", "status", "then"),
    [
        ("GET", 301, "GET"),
        ("GET", 302, "GET"),
        ("GET", 303, "GET"),
        ("GET", 307, "GET"),
        ("GET", 308, "GET"),
        ("POST", 301, "GET"),
        ("POST", 302, "GET"),
        ("POST", 303, "GET"),
        ("POST", 307, "POST"),
        ("POST", 308, "POST"),
    ],
)
async def test_the_method_after_a_redirect(method: str, status: int, then: str, bench: Bench, target: Target) -> None:
    target.replies(to("/b?x=2", status))
    body = {"a": 1} if method == "POST" else None
    async with session(bench) as asked:
        answer = await asked.request(method, target.url("/a"), params={"q": "1"}, json=body)  # type: ignore[arg-type]
    assert (answer.status, answer.url) == (200, target.url("/b?x=2"))
    sent = b'{"a":1}' if method == "POST" else b""
    assert story(target) == [(method, "/a?q=1", sent), (then, "/b?x=2", sent if then == method else b"")]
    assert [name for name in target.seen[1].names if name.lower() == "content-type"] == (
        ["Content-Type"] if then == "POST" else []
    )


async def test_each_hop_is_asked_by_the_same_identity_and_is_on_record(bench: Bench, target: Target) -> None:
    target.replies(
        Reply(302, headers={"Location": "/b", "Set-Cookie": "seen=1; Path=/"}),
        to("//" + NAME.upper() + f":{target.port}/c"),
    )
    async with session(bench) as asked:
        await asked.request("GET", target.url("/a"))
        assert [(attempt.status, attempt.rotated) for attempt in asked.attempts] == [
            (302, False),
            (302, False),
            (200, False),
        ]
    assert {(seen.proxy, seen["user-agent"]) for seen in target.seen} == {(0, target.seen[0]["user-agent"])}
    assert [seen.path for seen in target.seen] == ["/a", "/b", "/c"]
    assert [value for seen in target.seen for name, value in seen.headers if name == "Cookie"] == ["seen=1", "seen=1"]


async def test_five_hops_are_followed_and_no_sixth(bench: Bench, target: Target) -> None:
    def script(seen: Seen) -> Reply:
        number = int(seen.path[1:])
        return to(f"/{number + 1}") if number != 5 else Reply()

    target.script = script
    async with session(bench) as asked:
        assert (await asked.request("GET", target.url("/0"))).status == 200
        assert len(target.seen) == 6
        with pytest.raises(
            Permanent, match=rf"{NAME}:{target.port} redirects more than 5 times in a row, at last to .*/12$"
        ):
            await asked.request("GET", target.url("/6"))
    assert len(target.seen) == 12


async def test_a_host_that_the_session_was_sent_to_may_be_led_to(bench: Bench, farm: ProxyFarm, target: Target) -> None:
    farm.names[OTHER] = "127.0.0.1"
    async with serving(farm) as other:
        host = f"{OTHER}:{other.port}"
        target.replies(to(f"http://{host}/x"))
        async with session(bench, host) as asked:
            answer = await asked.request("GET", target.url("/a"))
        assert (answer.status, answer.url) == (200, f"http://{host}/x")
        assert [seen.path for seen in other.seen] == ["/x"]
        assert [attempt.host for attempt in asked.attempts] == [f"{NAME}:{target.port}", host]


@pytest.mark.parametrize(
    ("location", "names"),
    [
        ("http://elsewhere.invalid/", "elsewhere.invalid, which is not allowed: only {here}$"),
        ("//elsewhere.invalid/x", "elsewhere.invalid, which is not allowed: only {here}$"),
        ("http://127.0.0.1/", "127.0.0.1, which is not allowed"),
        ("http://169.254.169.254/latest/meta-data", "169.254.169.254, which is not allowed"),
        ("http://{name}/", "{name}, which is not allowed"),
        ("http://{here}@elsewhere.invalid/", "elsewhere.invalid, which is not allowed"),
        ("http://{here}.elsewhere.invalid/", "elsewhere.invalid, which is not allowed"),
        ("file:///etc/passwd", "file: only https, or http from http"),
        ("ftp://{here}/x", "ftp: only https, or http from http"),
        ("javascript:alert(1)", "javascript: only https, or http from http"),
        ("http://[::1", "an invalid URL"),
        ("http://{name}:port/", "which is not allowed|an invalid URL"),
    ],
)
async def test_nowhere_else(location: str, names: str, bench: Bench, target: Target) -> None:
    here = f"{NAME}:{target.port}"
    target.replies(to(location.format(here=here, name=NAME)))
    async with session(bench) as asked:
        with pytest.raises(Permanent, match=names.format(here=here, name=NAME)) as caught:
            await asked.request("GET", target.url("/a"))
    assert str(caught.value).startswith(f"{here} redirects to ")
    assert len(target.seen) == len(target.peers) == 1
    assert (await bench.row(0)).failure_count == 0


async def test_a_login_in_an_address_is_never_sent(bench: Bench, target: Target) -> None:
    target.replies(to(f"http://user:pass@{NAME}:{target.port}/x"))
    async with session(bench) as asked:
        with pytest.raises(Permanent):
            await asked.request("GET", target.url("/a"))
    assert len(target.seen) == 1


async def test_what_was_secret_does_not_go_on_in_the_clear(bench: Bench, target: Target, secure_target: Target) -> None:
    clear = f"{NAME}:{target.port}"
    secure_target.replies(to(f"http://{clear}/x"))
    async with session(bench, clear) as asked:
        with pytest.raises(Permanent, match="redirects to http: only https, or http from http, is followed"):
            await asked.request("GET", secure_target.url("/a"))
    assert target.peers == []
    # The other way is well.
    target.replies(to(secure_target.url("/y")))
    async with session(bench, f"{NAME}:{secure_target.port}") as asked:
        assert (await asked.request("GET", target.url("/b"))).status == 200
    assert [seen.path for seen in secure_target.seen] == ["/a", "/y"]


async def test_a_redirect_leads_to_no_answer_that_is_too_large(bench: Bench, target: Target) -> None:
    bomb = gzip.compress(b"\0" * 20_000_000)
    target.replies(to("/bomb"), Reply(body=bomb, headers={"Content-Encoding": "gzip"}))
    async with session(bench) as asked:
        with pytest.raises(Permanent, match="FETCH_MAX_BYTES"):
            await asked.request("GET", target.url("/a"))
    assert len(target.seen) == 2


async def test_a_redirect_with_a_login_is_not_followed_and_leaves_the_login_nowhere(
    pool: Pool, bench: Bench, farm: ProxyFarm, target: Target
) -> None:
    careful = Bench(pool, farm, robots=Policy())
    where = f"http://me:sesame-open@{NAME}:{target.port}/b"
    target.script = lambda seen: Reply(404) if seen.path == "/robots.txt" else to(where)
    async with session(careful) as asked:
        with pytest.raises(Permanent, match="with credentials in the URL") as raised:
            await asked.request("GET", target.url("/a"))
    await careful.rotator.close()
    assert "sesame" not in str(raised.value)
    assert [seen.path for seen in target.seen] == ["/robots.txt", "/a"]
    async with pool.connection() as conn:
        rows = await (await conn.execute("SELECT host FROM hosts UNION ALL SELECT host FROM host_events")).fetchall()
    assert {row[0] for row in rows} == {f"{NAME}:{target.port}"}
