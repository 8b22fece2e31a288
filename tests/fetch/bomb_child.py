"""A process that asks once, and says what it took: `python -m tests.fetch.bomb_child`, its task as JSON on standard input."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from pathlib import Path

from menuwatch.fetch.classify import classify_error
from menuwatch.fetch.identity import Identity
from menuwatch.fetch.profiles import PROFILES
from menuwatch.fetch.transport import Transport
from menuwatch.sim.proxies import ProxyInfo
from tests.fetch.conftest import as_row


def _peak() -> int:
    """The most memory that this process ever held, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count what the parent held when it started us
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


async def _ask(task: dict[str, object]) -> dict[str, object]:
    info = ProxyInfo(**task["proxy"])  # type: ignore[arg-type]
    identity = Identity(proxy=as_row(info), profile=PROFILES[0], locale="en-US")
    max_bytes = int(str(task["max_bytes"]))
    transport = Transport(identity, timeout_seconds=20, max_bytes=max_bytes, ca_file=str(task["ca_file"]))
    try:
        await transport.send("GET", str(task["small"]))
        before = _peak()
        exchange = await transport.send("GET", str(task["large"]))
    finally:
        await transport.close()
    assert exchange.error is not None, f"answered with {exchange.bytes} bytes"
    return {"verdict": str(classify_error(exchange.error).verdict), "grown": _peak() - before}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_ask(json.load(sys.stdin)))))
