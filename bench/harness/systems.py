"""The queues that can be measured, and how their adapters are started."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "queue"))

import peers  # noqa: E402 - the peers of bench/queue, installed into its .peers folder

CONTRACT = HERE / "menuwatch-bench"


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """`missing` says why it cannot be started here."""

    name: str
    command: tuple[str, ...] = ()
    environment: dict[str, str]
    missing: str | None = None


def _menuwatch() -> peers.Runtime:
    return peers.Runtime(command=(sys.executable,))


_ADAPTERS: dict[str, tuple[Callable[[], peers.Runtime], tuple[str, ...]]] = {
    "menuwatch": (_menuwatch, ("-m", "menuwatch_bench.adapter")),
    "awa": (peers.python, (str(HERE / "adapters" / "awa_adapter.py"),)),
    "pgboss": (peers.node, (str(HERE / "adapters" / "pgboss_adapter.mjs"),)),
    "absurd": (peers.python, (str(HERE / "adapters" / "absurd_adapter.py"),)),
    "procrastinate": (peers.python, (str(HERE / "adapters" / "procrastinate_adapter.py"),)),
}
NAMES = tuple(_ADAPTERS)


def system(name: str) -> System:
    """Installs what the adapter needs, if that is not there yet."""
    runtime, arguments = _ADAPTERS[name]
    found = runtime()
    environment = os.environ | {"PYTHONPATH": str(CONTRACT), "BENCH_PEERS": str(peers.FOLDER / "node")}
    return System(name=name, command=(*found.command, *arguments), environment=environment, missing=found.missing)
