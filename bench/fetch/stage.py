"""What all contestants meet: the simulated platform, the database, and the core that each side has for itself."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import certifi
import msgspec
import psutil

from menuwatch.db import embedded, migrate
from menuwatch.db.pool import Pool, open_pool
from menuwatch.fetch.transport import with_params
from menuwatch.platforms.dutchie.queries import DEFAULT_HASHES, FILTERED_PRODUCTS, menu_variables
from menuwatch.proxies import service as proxy_operations
from menuwatch.stores import store as stores
from menuwatch.stores.store import Details

HERE = Path(__file__).resolve().parent
HEADERS = {
    "accept": "application/json",
    "content-type": "application/json",
    "apollo-require-preflight": "true",
    "x-apollo-operation-name": FILTERED_PRODUCTS.name,
}
"""What Menuwatch asks for a page with, besides what makes a browser."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is asked for. The last page of a menu is never full, so that its end shows without one page more."""

    stores: int
    pages: int
    per_page: int
    concurrency: int
    warm: int

    @property
    def products(self) -> int:
        return self.pages * self.per_page - max(1, self.per_page // 3)


def cores() -> tuple[set[int] | None, set[int] | None]:
    """(the contestant's core, those of everything else); None and None where there is only one."""
    found = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return ({found[0]}, set(found[1:])) if len(found) > 1 else (None, None)


class Platform:
    """The simulator at work in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], hello: dict[str, Any], ca_file: Path, size: Size) -> None:
        self._process = process
        self._hello = hello
        self._size = size
        self.base_url: str = hello["base_url"]
        self.ca_file = ca_file
        self.proxies: list[dict[str, Any]] = hello["proxies"]
        self.stores: list[dict[str, Any]] = hello["stores"]

    @property
    def process(self) -> psutil.Process:
        return psutil.Process(self._process.pid)

    def proxy_urls(self) -> list[str]:
        """The proxies with their logins."""
        return [
            f"http://{quote(one['username'], safe='')}:{quote(one['password'], safe='')}@{one['host']}:{one['port']}"
            for one in self.proxies
        ]

    def menus(self) -> list[dict[str, Any]]:
        """Each store's menu: the addresses of its pages, exactly as Menuwatch asks for them."""
        return [
            {
                "id": store["id"],
                "products": self._size.products,
                "urls": [self._page(store["id"], number) for number in range(self._size.pages)],
            }
            for store in self.stores
        ]

    def _page(self, store_id: str, number: int) -> str:
        persisted = {"persistedQuery": {"version": 1, "sha256Hash": DEFAULT_HASHES[FILTERED_PRODUCTS.name]}}
        params = {
            "operationName": FILTERED_PRODUCTS.name,
            "variables": msgspec.json.encode(menu_variables(store_id, number)).decode(),
            "extensions": msgspec.json.encode(persisted).decode(),
        }
        return with_params(self._hello["graphql_url"], params)

    def stats(self) -> dict[str, Any]:
        """What was asked and served so far; see `menuwatch.sim.stats`."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{self._hello['control_url']}/stats", timeout=60) as answer:
            found: dict[str, Any] = json.load(answer)
        return found


@contextmanager
def platform(folder: Path, size: Size, *, proxies: int, core: set[int] | None) -> Iterator[Platform]:
    """The simulator with its proxies, ready to serve every page."""
    options = {
        "stores": size.stores, "products": size.products, "seed": 1, "proxies": proxies, "clamp": size.per_page,
        "pages": size.pages,
    }  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, str(HERE / "world.py"), json.dumps(options)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        if core:
            os.sched_setaffinity(process.pid, core)
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise SystemExit(f"the simulator did not start (exit code {process.wait()})")
        hello = json.loads(line)
        # A client in the open trusts the usual authorities; reading them is part of what a connection costs.
        ca_file = folder / "trusted.pem"
        ca_file.write_text(Path(certifi.where()).read_text() + "\n" + hello["ca"])
        yield Platform(process, hello, ca_file, size)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """Menuwatch's database. `store_ids` in the order of the platform's stores."""

    url: str
    version: str
    store_ids: Sequence[int]
    folder: Path | None

    def seconds(self) -> float | None:
        """Processor seconds that the server's processes have used so far; None where it is not ours to look at."""
        if self.folder is None:
            return None
        pid = int((self.folder / "postmaster.pid").read_text().split("\n", 1)[0])
        spent = 0.0
        for process in [psutil.Process(pid), *psutil.Process(pid).children()]:
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                spent += times.user + times.system
        # What has ended is counted by its parent.
        times = psutil.Process(pid).cpu_times()
        return spent + times.children_user + times.children_system


async def furnish(pool: Pool, platform_: Platform) -> list[int]:
    """Proxies and stores into the database; returns the stores' ids."""
    for one, url in zip(platform_.proxies, platform_.proxy_urls(), strict=True):
        await proxy_operations.add(pool, url, state=one["state"], timezone=one["timezone"])
    ids = []
    async with pool.connection() as conn:
        for store in platform_.stores:
            details = Details(
                platform_dispensary_id=store["id"],
                slug=store["slug"],
                name=store["name"],
                name_raw=store["name"],
                state=store["state"],
            )
            ids.append((await stores.promote(conn, "dutchie", details))[0])
    return ids


@contextmanager
def server(folder: Path, core: set[int] | None) -> Iterator[tuple[str, Path | None]]:
    """The server that BENCH_DATABASE_URL names (an empty database), or an embedded one with its default durability."""
    if given := os.environ.get("BENCH_DATABASE_URL"):
        yield given, None
        return
    before = os.sched_getaffinity(0) if core else set()
    try:
        if core:
            os.sched_setaffinity(0, core)  # the server's processes inherit it
        url, stack = embedded.start(folder / "postgres")
    finally:
        if core:
            os.sched_setaffinity(0, before)
    with stack:
        yield url, folder / "postgres"


async def database(url: str, folder: Path | None, platform_: Platform) -> Database:
    """The schema, and what a crawl needs to begin."""
    migrate.migrate(url)
    async with open_pool(url) as pool:
        ids = await furnish(pool, platform_)
        async with pool.connection() as conn:
            row = await (await conn.execute("SHOW server_version")).fetchone()
    return Database(url=url, version=str(row[0]).split()[0] if row else "?", store_ids=ids, folder=folder)
