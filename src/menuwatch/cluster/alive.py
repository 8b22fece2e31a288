"""Whether a server or the workers of a pod answer, for the health checks of containers: `python -m menuwatch.cluster.alive server`.

Ends with 0 where they do. Of workers one is enough: those that crash are started again by their pod, and who was decommissioned is
missed by nobody.
"""

from __future__ import annotations

import http.client
import sys
from collections.abc import Sequence

from menuwatch.core.settings import Settings

_SECONDS = 3.0


def main(arguments: Sequence[str], settings: Settings) -> int:
    """The exit code; what is wrong goes to standard error."""
    if list(arguments) == ["server"]:
        asked = [settings.port]
        host, path = settings.host, "/healthz"
    elif list(arguments) == ["worker"] and settings.metrics_port:
        asked = [settings.metrics_port + place for place in range(settings.workers_per_pod)]
        host, path = settings.metrics_host, "/metrics"
    else:
        print("say `server`, or `worker` with METRICS_PORT set: its metrics are what is asked for", file=sys.stderr)
        return 2
    here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - which address answers, not where to listen
    if any(_answers(here, port, path) for port in asked):
        return 0
    print(f"nobody answers on {here}, ports {asked[0]} to {asked[-1]}", file=sys.stderr)
    return 1


def _answers(host: str, port: int, path: str) -> bool:
    connection = http.client.HTTPConnection(host, port, timeout=_SECONDS)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Settings.from_env()))
