"""Who is measured, and how each is set. README.md says why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fetch import peers

SIDES = Path(__file__).resolve().parent / "sides"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """`archives`: whether it keeps what it gets, so that the files can be looked at afterwards."""

    name: str
    program: str
    package: str
    runtime: Callable[[], peers.Runtime]
    archives: bool
    settings: str
    options: Mapping[str, Any] = field(default_factory=dict)
    """Added to its job."""


OURS = "menuwatch"
BARE = "curl_cffi"

ALL = (
    Contestant(
        name=OURS,
        program="menuwatch_side.py",
        package="menuwatch",
        runtime=peers.ours,
        archives=True,
        settings="all as by default; the handler of payload_fetch, its outcome written in a transaction",
    ),
    Contestant(
        name=BARE,
        program="bare_side.py",
        package="curl_cffi",
        runtime=peers.ours,
        archives=False,
        settings='AsyncSession(impersonate="chrome") per menu; fetches only: reads nothing, archives nothing',
    ),
    Contestant(
        name="curl_cffi-kept",
        program="bare_side.py",
        package="curl_cffi",
        runtime=peers.ours,
        archives=False,
        settings="the same with one session per slot for all menus: less than the job, and what fetching costs at least",
        options={"kept": True},
    ),
    Contestant(
        name="crawlee",
        program="crawlee_side.py",
        package="crawlee",
        runtime=peers.theirs,
        archives=True,
        settings="HttpCrawler, CurlImpersonateHttpClient, SessionPool with a session per proxy, memory storage, fixed concurrency",
    ),
    Contestant(
        name="scrapy",
        program="scrapy_side.py",
        package="scrapy",
        runtime=peers.theirs,
        archives=True,
        settings="asyncio reactor, no throttle, no cookies, no logs; its own HTTP client (no browser's TLS)",
    ),
)
