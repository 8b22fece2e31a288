"""Container health check of a server or of the workers of a pod: `python -m menuwatch.scaling.healthcheck server`.

Exits with 0 if it responds. One live worker is enough: the pod restarts crashed ones, and decommissioned workers do not count.
"""

from __future__ import annotations

import http.client
import sys
from collections.abc import Sequence

from menuwatch.config.settings import Settings

_SECONDS = 3.0


def main(arguments: Sequence[str], settings: Settings) -> int:
    """Returns the exit code; problems are printed to standard error."""
    if list(arguments) == ["server"]:
        ports = [settings.port]
        host, path = settings.host, "/healthz"
    elif list(arguments) == ["worker"] and settings.metrics_port:
        ports = [settings.metrics_port + ordinal for ordinal in range(settings.workers_per_pod)]
        host, path = settings.metrics_host, "/metrics"
    else:
        print("usage: healthcheck server|worker (worker needs METRICS_PORT)", file=sys.stderr)
        return 2
    address = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - which address answers, not where to listen
    if any(_answers(address, port, path) for port in ports):
        return 0
    print(f"no response on {address}, ports {ports[0]} to {ports[-1]}", file=sys.stderr)
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
