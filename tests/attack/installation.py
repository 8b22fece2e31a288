"""A whole installation in a folder of its own: its commands and its server are real processes, its database the embedded one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, LiteralString

import httpx
import psycopg

from menuwatch.accounts.model import Permission, Role
from menuwatch.cli import demo
from menuwatch.config.platforms import is_platform_variable
from menuwatch.config.settings import variables
from menuwatch.db import postmaster
from menuwatch.db.pool import open_pool
from menuwatch.matching.engine import match_all
from menuwatch.storefront.indexer import StorefrontIndexer
from menuwatch.storefront.watches import service as watch_service
from tests.browser import seed_data
from tests.chaos.worker_processes import ROOT, Leash
from tests.dashboard.users_fixture import session_of
from tests.users_fixture import bearer_at

PROGRAM = [sys.executable, "-m", "menuwatch.cli.main"]
READY_SECONDS = 60.0
"""Within which a server must answer again after whatever was done to it."""
_LOGGED = re.compile(r"Traceback \(most recent|\[(?:error|critical) *\] *([^\n]{0,60}?)  ")


def until(condition: Callable[[], Any], seconds: float = READY_SECONDS) -> Any:
    """What the condition gives once it is true; its last value when the time is over."""
    deadline = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return value


class Installation:
    """`home` is MENUWATCH_HOME. Every process that it starts is held by the leash, so none outlives the run."""

    def __init__(self, home: Path, leash: Leash, environ: Mapping[str, str]) -> None:
        self.home, self._leash, self._given = home, leash, environ
        self.log = home.parent / f"{home.name}.log"
        known = {name for name, _, _ in variables()}
        self.environ = {
            name: value for name, value in os.environ.items() if name not in known and not is_platform_variable(name)
        } | {
            "MENUWATCH_HOME": str(home),
            "PASSWORD_MEMORY_KIB": "1024",
            **environ,
        }
        self.process: subprocess.Popen[bytes] | None = None
        self.address = ""

    def fill(self, *, stores: int, products: int, cycles: int, seed: int) -> None:
        """Crawls a simulated market into the empty folder, and adds what only weeks of work bring."""

        async def crawl() -> None:
            async with demo.market(
                self.home, store_count=stores, product_count=products, seed=seed, image_downloads=4
            ) as (simulator, system):
                await seed_data.crawl(simulator, system, cycles)
                await seed_data.furnish(system)
                await match_all(system.pool)
                await StorefrontIndexer(system.pool, watcher=watch_service.evaluate_store).step()

        asyncio.run(crawl())

    def copied(self, home: Path, **environ: str) -> Installation:
        """The same content elsewhere; this one must not run."""
        made = self.beside(home, **environ)
        subprocess.run(["cp", "-a", str(self.home), str(home)], check=True)  # keeps the owner of the database's files
        return made

    def beside(self, home: Path, **environ: str) -> Installation:
        """An empty one elsewhere."""
        home.parent.mkdir(parents=True, exist_ok=True)
        return Installation(home, self._leash, {**self._given, **environ})

    # its processes

    def launch(self, *words: str, output: Path, **options: Any) -> subprocess.Popen[bytes]:
        """Starts a command, its output appended to a file."""
        with output.open("ab") as log:
            process = subprocess.Popen(
                [*PROGRAM, *words], cwd=options.pop("cwd", ROOT), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=self.environ | options.pop("environ", {}), **options,
            )  # fmt: skip
        self._leash.hold(process.pid)
        return process

    def command(self, *words: str, seconds: float = 120.0) -> tuple[int, str]:
        """Exit code and output of a command; -9 when it took too long."""
        output = self.home.parent / f"{self.home.name}-{time.monotonic_ns()}.out"
        process = self.launch(*words, output=output)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return process.returncode, output.read_text(errors="replace")

    def start(self, **options: Any) -> None:
        """Starts the server and waits until it is ready."""
        said = len(self.log_text())
        self.process = self.launch("server", "--port", "0", output=self.log, **options)
        found = until(lambda: re.search(r"listening on (http://\S+)", self.log_text()[said:]) or self.process.poll())  # type: ignore[union-attr]
        if not isinstance(found, re.Match):
            raise RuntimeError(f"the server did not start:\n{self.log_text()[-2000:]}")
        self.address = found[1]
        until(self.ready)
        self.hold_database()

    def hold_database(self) -> int:
        """The process id of the embedded database, which the leash now holds too; 0 where it does not run."""
        server = postmaster.read(self.home / "postgres")
        if server is None or server.pid is None or not server.runs_here():
            return 0
        self._leash.hold(server.pid)
        return server.pid

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Ends the server, and the database that it may have left."""
        process, self.process = self.process, None
        if process is not None:
            process.send_signal(how)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self._leash.let_go(process.pid)
        if how != signal.SIGKILL and (pid := self.hold_database()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGQUIT)
            until(lambda: not self.hold_database(), 20)

    # what it says

    def get(self, path: str, **options: Any) -> httpx.Response | None:
        """The answer to a GET; None where there was none."""
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(self.address + path, **{"timeout": 10.0, **options})
        return None

    def ready(self) -> bool:
        """Whether /readyz says so."""
        answer = self.get("/readyz", timeout=15.0)
        return answer is not None and answer.status_code == 200

    def failures_counted(self) -> int:
        """Answers of status 500 by the server's own count."""
        answer = self.get("/metrics", headers=self.token())
        assert answer is not None
        lines = [line for line in answer.text.splitlines() if line.startswith("menuwatch_http_requests_total{")]
        return sum(int(float(line.rsplit(" ", 1)[1])) for line in lines if 'status="500"' in line)

    def log_text(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def complaints(self) -> Counter[str]:
        """Errors and traces in the server's log, and how often."""
        return Counter(found[1] or "Traceback" for found in _LOGGED.finditer(self.log_text()))

    def excerpt(self, text: str) -> str:
        """The end of the log's first passage with that text: of a trace, what was raised."""
        passage = self.log_text().partition(text)[2][:6000].split("\n20")[0]
        return " | ".join(line.strip() for line in passage.splitlines() if line.strip())[-400:]

    # who and what is in it

    @contextlib.contextmanager
    def database(self) -> Iterator[psycopg.Connection]:
        """A connection to the database, by its socket."""
        with psycopg.connect(self.url, autocommit=True) as conn:
            yield conn

    @property
    def url(self) -> str:
        server = postmaster.read(self.home / "postgres")
        assert server is not None
        assert server.socket is not None
        return f"postgresql://postgres@/postgres?host={server.socket.parent}"

    def rows(self, query: LiteralString, *values: Any) -> list[tuple[Any, ...]]:
        with self.database() as conn:
            return conn.execute(query, values).fetchall()

    def token(
        self, name: str = "attacker", role: str = "admin", scopes: tuple[str, ...] = tuple(Permission)
    ) -> dict[str, str]:
        """The header of a program."""
        return bearer_at(self.url, name=name, role=role, scopes=scopes)

    def session(self, name: str, role: Role) -> dict[str, str]:
        """The header of a browser in which that user is logged in."""

        async def begun() -> str:
            async with open_pool(self.url) as pool:
                return await session_of(pool, name, role)

        return {"Cookie": f"menuwatch={asyncio.run(begun())}"}

    def ids(self) -> dict[str, str]:
        """Something that exists, by the name that a route gives its parameter."""
        tables = {
            "task_id": "task_history", "payload_id": "raw_crawl_payloads", "product_id": "catalog_products",
            "proxy_id": "proxies", "schedule_id": "task_schedules", "job_id": "crawl_jobs", "store_id": "dispensaries",
            "delivery_id": "alert_deliveries", "rule_id": "alert_rules", "view_id": "saved_views",
            "brand_id": "brands", "canonical_id": "canonical_products", "canonical_product_id": "canonical_products",
            "location_id": "locations",
        }  # fmt: skip
        found = {
            name: str(self.rows(f"SELECT coalesce(min(id), 1) FROM {table}")[0][0]) for name, table in tables.items()
        }
        ((item, host, brand),) = self.rows(
            "SELECT (SELECT min(id) FROM storefront_items), (SELECT min(host) FROM hosts), (SELECT min(slug) FROM brands)"
        )
        more = {
            "dispensary_id": found["store_id"], "user_id": "999999", "token_id": "999999", "worker_id": "xylos-0",
            "host": host, "path": "placeholder", "what": "products", "role": "payload_fetch", "command": "pause", "step": "all",
            "address": f"{item}-x", "state": "az", "slug": brand, "token": "none", "part": "1", "secret": "none",
        }  # fmt: skip
        return found | more
