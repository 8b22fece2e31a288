"""The simulator as a child process, steered through its handle."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import httpx
import psutil
import pytest

from menuwatch.sim.config import Rates
from menuwatch.sim.process import Simulator, SimulatorError
from tests.sim.client import client, products


async def test_served_menus_equal_the_expected_state() -> None:
    async with Simulator(stores=3, products=110, seed=9, faults={"pinned": 1}) as simulator:
        async with client(simulator.graphql_url) as c:
            for tick in range(4):
                for store in simulator.market.stores:
                    pages = await c.menu(store.id)
                    served = {item["id"]: item for page in pages for item in page}
                    rows = simulator.expected.rows(store.slug, tick)
                    assert served.keys() == rows.keys()
                    for product_id, row in rows.items():
                        item = served[product_id]
                        assert [o.option for o in row.options] == item["Options"]
                        assert [o.price_rec for o in row.options] == [Decimal(str(p)) for p in item["recPrices"]]
                assert await simulator.tick() == tick + 1 == simulator.now
        known, counts = await simulator.expected_state()
        assert await simulator.crawls() == {store.slug: [0, 1, 2, 3] for store in simulator.market.stores}
        assert counts == simulator.expected.expect(await simulator.crawls())
        assert counts.products == sum(len(of_store) for of_store in known.values())
        assert counts.products > 330
        assert counts.snapshots > 4 * 300
        stats = await simulator.stats()
        assert stats["tick"] == 4
        assert (stats["blocked"], stats["direct"]) == (0, stats["requests"]["FilteredProducts"])
        await simulator.reset_stats()
        assert await simulator.crawls() == {}


async def test_the_handle_steers_everything() -> None:
    rates = Rates(unchanged=1)
    async with Simulator(stores=2, products=20, seed=4, proxies=2, rates=rates) as simulator:
        store = simulator.market.stores[0]
        assert [p.protocol for p in simulator.proxies] == ["http", "socks5"]
        assert simulator.proxies[0].url.startswith("http://user0:")
        assert simulator.proxies[0].password not in repr(simulator.proxies[0])
        async with client(simulator.graphql_url) as c:
            before = (await c.page(store.id)).content
            await simulator.tick(3)
            assert (await c.page(store.id)).content == before
            await simulator.inject_faults({"server_error": {"status": 503}})
            assert (await c.page(store.id)).status_code == 503
            await simulator.inject_faults(None)
            await simulator.accept_hashes({})
            assert (await c.page(store.id)).json()["errors"][0]["message"] == "PersistedQueryNotFound"
            await simulator.accept_hashes(None)
            assert products(await c.page(store.id))[1] == 20
        async with client(simulator.graphql_url, proxy=simulator.proxies[0].url) as c:
            assert products(await c.page(store.id))[1] == 20
        await simulator.break_proxy(0, "connect_502")
        async with client(simulator.graphql_url, proxy=simulator.proxies[0].url) as c:
            assert (await c.page(store.id)).status_code == 502
        arrivals = await simulator.arrivals()
        assert [arrival.proxy for arrival in arrivals if arrival.proxy is not None] == [0]
        assert {arrival.host for arrival in arrivals} == {simulator.base_url.removeprefix("http://")}
        assert [arrival.status for arrival in arrivals] == [200, 200, 503, 200, 200, 200]
        assert await simulator.arrivals(arrivals[-1].number) == []
        await simulator.robots("User-agent: *\nDisallow: /")
        async with httpx.AsyncClient(trust_env=False) as http:
            assert (await http.get(f"{simulator.base_url}/robots.txt")).text == "User-agent: *\nDisallow: /"
        with pytest.raises(SimulatorError, match="not a fault"):
            await simulator.inject_faults({"rudeness": 1})
        async with httpx.AsyncClient(trust_env=False) as http:
            assert (await http.get(f"{simulator.image_url}/a")).content == (
                await http.get(f"{simulator.image_url}/a")
            ).content


async def test_it_says_so_when_it_cannot_start(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(SimulatorError, match="did not start"):
        async with Simulator(stores=1, products=1, port=taken.getsockname()[1]):
            pass
    with pytest.raises(SimulatorError, match="did not start"):
        async with Simulator(stores=1, products=1, faults={"rudeness": 1}):
            pass
    assert "not a fault" in capfd.readouterr().err


@pytest.mark.parametrize("way", ["closed", "terminated"])
async def test_it_ends_with_its_input_or_on_sigterm(way: str) -> None:
    simulator = Simulator(stores=1, products=5)
    async with simulator:
        child = psutil.Process(simulator.pid)
        if way == "terminated":
            os.kill(simulator.pid, signal.SIGTERM)
            assert simulator._child is not None
            assert await asyncio.wait_for(simulator._child.wait(), 10) == 0
            with pytest.raises(SimulatorError, match="gone"):
                await simulator.tick()
    assert not child.is_running()
    assert simulator._child is not None
    assert simulator._child.returncode == 0


@pytest.mark.parametrize("kind", ["null", "file", "closed"])
def test_input_that_has_ended_before_it_began_is_refused_in_words(kind: str, tmp_path: Path) -> None:
    (tmp_path / "input").write_text("")
    source = {"null": "</dev/null", "file": f"<{tmp_path / 'input'}", "closed": "<&-"}[kind]
    command = ["sh", "-c", f'exec "$0" -m menuwatch.sim --stores 1 --products 1 {source}', sys.executable]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == (
        "menuwatch.sim: it runs until its standard input ends: connect a terminal or a pipe, for example "
        "`sleep infinity | python -m menuwatch.sim`\n"
    )
