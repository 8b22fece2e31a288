"""A server with short limits, in its own process: `python -m tests.api.limited_server`. Ends when its standard input does.

It prints the port once requests are answered; its log goes to standard error.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading

from menuwatch.cli.serving import listening, serve
from menuwatch.cli.startup import load_settings
from menuwatch.system import open_system
from menuwatch.web.connections import Limits

LIMITS = Limits(headers=1.0, body=1.0, body_bytes=1000)


async def main() -> None:
    found = load_settings(quiet=False, port=0)
    threading.Thread(target=lambda: (sys.stdin.read(), os.kill(os.getpid(), signal.SIGTERM)), daemon=True).start()
    with listening(found) as listener:
        async with open_system(found) as system:
            await serve(system, listener, lambda address: print(address.rpartition(":")[2], flush=True), LIMITS)


if __name__ == "__main__":
    asyncio.run(main())
