"""How long people wait: every list of the API and every page, in an installation of millions, over a real socket.

    python bench/pages.py [--keep DIR] [--requests 60] [--only REGEX] [--json]
                          [--stores 2000] [--products 500] [--tasks 1000000] [--days 30] [--states 5.64]

Fills an embedded database of its own (ten minutes; `--keep` keeps it there, and uses it again), starts `menuwatch server` on it, and
asks each address `--requests` times, one request after the other, all addresses in turn. Lists are asked for their first page and,
where they are long, for one in the middle and one far down. What answers 404 is told as missing. Exit 1 where a 95th percentile is
not below 100 ms.

    p95_ms        the worst 95th percentile of an address
    slowest[]     the slowest addresses: p50, p95, max in milliseconds
    missing[]     addresses that there are not (yet)
    failed[]      addresses that answered with an error
    never_asked[] addresses of the server that no list of this bench has (bench/pages_addresses.py)
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from menuwatch.accounts import tokens, users
from menuwatch.accounts.model import Permission, Role
from menuwatch.db import embedded, migrate
from menuwatch.db.pool import Connection, open_pool
from menuwatch.site.screen import brand_path, item_path, store_path
from pages_addresses import API_LEFT_OUT, DEEP, OPENAPI, PAGES, QUERIES, never_asked
from pages_fill import Sizes, counts, fill, freshen

AIM = 100.0
SAMPLES = 20
"""Stores, products, tasks and so on that addresses are asked for in turn."""
HOPS = {"middle": 8, "deep": 40}
"""Pages of 200 that are walked to come there."""


@dataclass(slots=True)
class Address:
    """Something to ask, with the times that its answers took, in milliseconds."""

    name: str
    paths: list[str]
    times: list[float] = field(default_factory=list)
    bytes: int = 0
    status: int = 0

    def p(self, share: float) -> float:
        found = sorted(self.times)
        return found[min(int(len(found) * share), len(found) - 1)]


class Client:
    """One connection that stays open, as a browser's or a program's."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        self._place = (parts.hostname or "127.0.0.1", parts.port or 80)
        self._headers = {"Authorization": f"Bearer {token}", "Accept-Encoding": "gzip", "Accept": "*/*"}
        self._conn: http.client.HTTPConnection | None = None

    def get(self, path: str, *, plain: bool = False) -> tuple[int, bytes, float]:
        """Status, body and milliseconds; `plain` asks for a body that is not compressed."""
        if self._conn is None:
            self._conn = http.client.HTTPConnection(*self._place, timeout=120)
        headers = {**self._headers, "Accept-Encoding": "identity"} if plain else self._headers
        started = time.perf_counter()
        self._conn.request("GET", path, headers=headers)
        answer = self._conn.getresponse()
        body = answer.read()
        took = 1e3 * (time.perf_counter() - started)
        if answer.will_close:
            self._conn = None
        return answer.status, body, took


async def samples(conn: Connection) -> dict[str, list[str]]:
    """What the names in addresses stand for."""
    chosen = random.Random(1)

    async def column(query: str) -> list[str]:
        return [quote(str(row[0]), safe="") for row in await (await conn.execute(query.encode())).fetchall()]

    lowest, highest = (await (await conn.execute("SELECT min(id), max(id) FROM catalog_products")).fetchone()) or (1, 1)
    now = datetime.now(UTC)
    tasks = f"SELECT id FROM task_history WHERE completed_at > now() - interval '9 days' ORDER BY hashint8(id) LIMIT {SAMPLES}"
    stores = f"FROM dispensaries WHERE slug <> 'real-store' ORDER BY hashint4(id) LIMIT {SAMPLES}"
    found = {
        "store_id": await column(f"SELECT id {stores}"),
        "location_id": await column(
            f"SELECT location_id FROM location_links ORDER BY hashint4(location_id) LIMIT {SAMPLES}"
        ),
        "slug": await column(f"SELECT slug {stores}"),
        "product_id": [str(chosen.randint(lowest, highest)) for _ in range(SAMPLES)],
        "task_id": await column(tasks),
        "fetch_id": await column(tasks.replace("WHERE", "WHERE role = 'payload_fetch' AND")),
        "payload_id": await column(f"SELECT id FROM raw_crawl_payloads ORDER BY hashint8(id) LIMIT {SAMPLES}"),
        "worker_id": await column(f"SELECT worker_id FROM worker_registry WHERE status <> 'stopped' LIMIT {SAMPLES}"),
        "rule_id": await column(f"SELECT id FROM alert_rules LIMIT {SAMPLES}"),
        "proxy_id": await column(f"SELECT id FROM proxies LIMIT {SAMPLES}"),
        "cause": await column(
            "SELECT cause FROM task_history WHERE status = 'failed' GROUP BY cause ORDER BY count(*) DESC LIMIT 12"
        ),
        "schedule_id": await column("SELECT id FROM task_schedules ORDER BY id"),
        "user_id": await column("SELECT id FROM users LIMIT 1"),
        "token_id": await column("SELECT id FROM api_tokens LIMIT 1"),
        "role": ["payload_fetch", "product_refresh", "analytics_refresh"],
        "host": ["dutchie.com"],
        "hour_ago": [quote((now - timedelta(hours=1)).isoformat())],
        "day_ago": [quote((now - timedelta(days=1)).isoformat())],
        "week_ago": [quote((now - timedelta(days=7)).isoformat())],
    }
    found["dispensary_id"] = found["store_id"]
    found["real"] = await column("SELECT id FROM dispensaries WHERE slug = 'real-store'")
    found["real_payload"] = await column(
        "SELECT max(p.id) FROM raw_crawl_payloads p JOIN dispensaries d ON d.id = p.dispensary_id WHERE d.slug = 'real-store'"
    )
    # What shoppers look at: items, most of them those that many stores have.
    items = f"(SELECT id, name FROM storefront_items WHERE stores > 0 ORDER BY stores DESC, id LIMIT {SAMPLES // 2})"
    others = items.replace("stores DESC, id", "hashint8(id)")
    named = await (await conn.execute(f"{items} UNION {others}".encode())).fetchall()
    found["item"] = [item_path(number, name).removeprefix("/p/") for number, name in named]
    named = await (await conn.execute(f"SELECT id, name {stores}".encode())).fetchall()
    found["store"] = [store_path(number, name).removeprefix("/s/") for number, name in named]
    query = f"SELECT name FROM storefront_totals WHERE kind = 'brand' ORDER BY items DESC LIMIT {SAMPLES}"
    slugs = await (await conn.execute(query.encode())).fetchall()
    found["brand"] = [brand_path(slug).removeprefix("/b/") for (slug,) in slugs]
    return found


def expanded(template: str, known: dict[str, list[str]]) -> list[str]:
    """The address with what its names stand for, once for each sample."""
    names = re.findall(r"\{(\w+)\}", template)
    most = max((len(known[name]) for name in names), default=1)
    return [template.format(**{name: known[name][n % len(known[name])] for name in names}) for n in range(most)]


def addresses(client: Client, known: dict[str, list[str]]) -> Iterator[Address]:
    """Everything that is asked."""
    described = json.loads(OPENAPI.read_text())["paths"]
    for path in sorted(set(QUERIES) - set(described)):
        raise SystemExit(f"bench/pages_addresses.py has queries for {path}, which openapi.json does not know")
    for path, methods in described.items():
        if "get" not in methods or path in API_LEFT_OUT:
            continue
        # Menus are read and compared of the one store whose files are there.
        at = path.replace("{dispensary_id}", "{real}") if path.endswith("/diff") else path
        if unknown := [name for name in re.findall(r"\{(\w+)\}", at) if not known.get(name)]:
            yield Address(f"{path} (nothing known for {', '.join(unknown)})", [])
            continue
        for query in QUERIES.get(path, [""]):
            template = f"{at}?{query}" if query else at
            yield Address(template, expanded(template, known))
            if path in DEEP and not query:
                yield from far_down(client, template, expanded(template, known)[0])
    for template in PAGES:
        if unknown := [name for name in re.findall(r"\{(\w+)\}", template) if not known.get(name)]:
            yield Address(f"{template} (nothing known for {', '.join(unknown)})", [])
        else:
            yield Address(template, expanded(template, known))


def far_down(client: Client, template: str, first: str) -> Iterator[Address]:
    """Pages in the middle of a list and far down, where it is that long."""
    join = "&" if "?" in first else "?"
    cursor = None
    for hop in range(1, max(HOPS.values()) + 1):
        more = f"&cursor={quote(cursor)}" if cursor else ""
        path = re.sub(r"[?&]limit=\d+", "", first)
        status, body, _ = client.get(f"{path}{'&' if '?' in path else '?'}limit=200{more}", plain=True)
        cursor = json.loads(body).get("next") if status == 200 else None
        if cursor is None:
            return
        for name, at in HOPS.items():
            if hop == at:
                yield Address(f"{template} ({name})", [f"{first}{join}cursor={quote(cursor)}"])


def measure(client: Client, asked: list[Address], requests: int) -> None:
    """Asks all addresses in turn; the first two rounds warm up and do not count."""
    for turn in range(requests + 2):
        for address in asked:
            if not address.paths or (turn and address.status != 200):
                continue
            status, body, took = client.get(address.paths[turn % len(address.paths)])
            if turn == 0 or status == 200:
                address.status = status if turn == 0 else address.status
                address.bytes = max(address.bytes, len(body))
            if turn >= 2 and status == 200:
                address.times.append(took)


async def token_of(conn: Connection) -> str:
    """A token that may read everything. Its user has a password that fits no hash."""
    known = await users.list_users(conn, name="bench")
    user = known[0] if known else await users.insert(conn, "bench", Role.ADMIN, "$argon2id$none")
    assert user is not None, "it is there or was just made"
    now = datetime.now(UTC)
    _, text = await tokens.create(conn, user, "bench", frozenset(Permission), expires_at=None, now=now, by=None)
    return text


@contextlib.contextmanager
def server(url: str, home: Path) -> Iterator[str]:
    """`menuwatch server` on a free port of the loopback; its address."""
    environment = {
        **os.environ,
        "DATABASE_URL": url,
        "MENUWATCH_HOME": str(home),
        "STORAGE_PATH": str(home / "storage"),
        "PORT": "0",
        "HOST": "127.0.0.1",
        "TASK_HISTORY_DAYS": "3650",
        "FETCH_ATTEMPT_DAYS": "3650",
        "SCHEDULE_RUN_DAYS": "3650",
        "LOG_LEVEL": "error",
    }
    command = [sys.executable, "-m", "menuwatch.cli.main", "server"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None, "it is a pipe"
        said = []
        for line in process.stderr:
            said.append(line)
            if found := re.search(r"listening on (http://\S+)", line):
                break
        else:
            raise SystemExit("the server did not come up:\n" + "".join(said))
        # What it says later must not fill the pipe.
        drain = subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
        try:
            yield found[1]
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
            drain.wait(10)


async def prepared(url: str, sizes: Sizes, home: Path, told: Any) -> tuple[str, dict[str, list[str]], dict[str, int]]:
    """Fills the database, or takes what is there; a token, samples, and how much there is."""
    async with open_pool(url, max_size=3) as pool:
        async with pool.connection() as conn:
            empty = (await (await conn.execute("SELECT NOT EXISTS (SELECT FROM dispensaries)")).fetchone() or [True])[0]
        if empty:
            started = time.perf_counter()
            await fill(pool, sizes, home / "storage", told)
            told(f"filled in {time.perf_counter() - started:,.0f} s")
        async with pool.connection() as conn:
            await freshen(conn)
            return await token_of(conn), await samples(conn), await counts(conn)


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("stores", "products", "tasks", "days"):
        asked.add_argument(f"--{name}", type=int, default=getattr(Sizes(), name))
    asked.add_argument("--states", type=float, default=Sizes().states)
    asked.add_argument("--requests", type=int, default=60)
    asked.add_argument("--keep", type=Path, help="the folder that the database is kept in, and used again")
    asked.add_argument("--only", default="", help="ask only addresses in which this regular expression is found")
    asked.add_argument("--show", type=int, default=40, help="how many of the slowest are shown")
    asked.add_argument("--json", action="store_true")
    given = asked.parse_args()
    sizes = Sizes(**{name: getattr(given, name) for name in ("stores", "products", "tasks", "days", "states")})
    told = (lambda text: print(text, file=sys.stderr)) if given.json else print
    with contextlib.ExitStack() as stack:
        home = given.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="menuwatch-bench-")))
        home.mkdir(parents=True, exist_ok=True)
        url, left = embedded.start(home / "postgres")
        stack.enter_context(left)
        migrate.migrate(url)
        token, known, sized = asyncio.run(prepared(url, sizes, home, told))
        told("; ".join(f"{name} {n:,}" for name, n in sized.items()))
        with server(url, home) as base:
            client = Client(base, token)
            chosen = [one for one in addresses(client, known) if re.search(given.only, one.name)]
            measure(client, chosen, given.requests)
    return report(chosen, sized, given)


def report(chosen: list[Address], sized: dict[str, int], given: argparse.Namespace) -> int:
    good = sorted((one for one in chosen if one.times), key=lambda one: -one.p(0.95))
    missing = [one.name for one in chosen if one.status == 404]
    failed = [f"{one.status} {one.name}" for one in chosen if not one.times and one.status != 404]
    over = [one for one in good if one.p(0.95) >= AIM]
    unknown = never_asked()
    if given.json:
        rows = [
            {
                "address": one.name,
                "p50_ms": round(one.p(0.5), 1),
                "p95_ms": round(one.p(0.95), 1),
                "max_ms": round(max(one.times), 1),
                "bytes": one.bytes,
            }
            for one in good
        ]
        found = {
            "p95_ms": rows[0]["p95_ms"] if rows else None,
            "addresses": len(good),
            "over": len(over),
            "slowest": rows[: given.show],
            "missing": missing,
            "failed": failed,
            "never_asked": unknown,
            "sizes": sized,
        }
        print(json.dumps(found, indent=2))
    else:
        print(f"{'p50':>8} {'p95':>8} {'max':>8} {'KB':>7}  address (ms)")
        for one in good[: given.show]:
            print(f"{one.p(0.5):8.1f} {one.p(0.95):8.1f} {max(one.times):8.1f} {one.bytes / 1e3:7.1f}  {one.name}")
        if good:
            middle = statistics.median(one.p(0.95) for one in good)
            print(f"{len(good)} addresses; 95th percentiles: worst {good[0].p(0.95):.1f} ms, median {middle:.1f} ms")
            print(f"{len(over)} not below {AIM:.0f} ms")
        for name, found_ in (("missing", missing), ("failed", failed), ("never asked", unknown)):
            for one_ in found_:
                print(f"{name}: {one_}")
    return 1 if over or failed else 0


if __name__ == "__main__":
    sys.exit(main())
