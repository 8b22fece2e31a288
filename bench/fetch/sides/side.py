"""What the contestants' programs have in common: the job, the clock, the archive, and how they talk to the harness.

    SIDE JOB      JOB is a file with a JSON object:

    menus         [{id, urls, products}]: whose menu, the address of each page in order, how many products all pages hold
    warm          the same, for the run before the measured one
    headers       what a page is asked for with, besides what makes a browser
    proxies       addresses with logins
    ca_file       certificates to trust
    concurrency   menus at once
    folder        where archives go; level: the gzip level that Menuwatch archives with

A side does the warm menus, says {"ready"}, waits for a line, does the menus, and says {"wall", "cpu", "pages", "products", "bytes"}:
seconds from the word to go until the last menu is done (archived, where it archives), processor seconds of the whole process for
that time, and what came.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from isal import isal_zlib


class _Found(msgspec.Struct):
    products: list[msgspec.Raw]


class _Data(msgspec.Struct):
    filteredProducts: _Found  # noqa: N815 - the wire's name


class _Page(msgspec.Struct):
    data: _Data


_decoder = msgspec.json.Decoder(_Page)


def products(body: bytes) -> int:
    """How many products a page holds; raises where it is no menu page."""
    return len(_decoder.decode(body).data.filteredProducts.products)


@dataclass
class Job:
    """The job, and how it goes."""

    given: dict[str, Any]
    _wall: float = 0.0
    _cpu: float = 0.0
    found: dict[str, float] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        return self.given[name]

    def start(self) -> None:
        """The clock runs, and nothing has come yet."""
        self.found = {"pages": 0, "products": 0, "bytes": 0}
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def stop(self) -> None:
        """What is done is done."""
        self.found["wall"] = time.perf_counter() - self._wall
        self.found["cpu"] = time.process_time() - self._cpu

    def count(self, pages: int, products: int, size: int) -> None:
        """So much came."""
        self.found["pages"] += pages
        self.found["products"] += products
        self.found["bytes"] += size

    def archive(self, menu: dict[str, Any], pages: list[bytes]) -> None:
        """One menu's pages into one compressed file."""
        packer = isal_zlib.compressobj(self.given["level"], isal_zlib.DEFLATED, 31, 9)
        with Path(self.given["folder"], f"{menu['id']}.json.gz").open("wb") as file:
            file.write(packer.compress(b'{"pages":['))
            for number, page in enumerate(pages):
                if number:
                    file.write(packer.compress(b","))
                file.write(packer.compress(page))
            file.write(packer.compress(b"]}") + packer.flush())


def job() -> Job:
    """The job that the command line names."""
    return Job(json.loads(Path(sys.argv[1]).read_text()))


def say(**event: Any) -> None:
    """Tells the harness."""
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


async def go() -> None:
    """Says that it is warm, and waits for the word to go."""
    say(ready=True)
    await asyncio.to_thread(sys.stdin.readline)


def failed(problem: str) -> None:
    """Ends the program; the harness shows the reason."""
    say(failed=problem)
    sys.exit(1)
