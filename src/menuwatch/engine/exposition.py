"""A worker's own metrics over HTTP, from a thread beside its event loop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server

from menuwatch.core.telemetry import get_logger
from menuwatch.engine.measures import Measures

log = get_logger(__name__)


@contextmanager
def exposed(measures: Measures, *, host: str, port: int, ordinal: int = 0) -> Iterator[int | None]:
    """Serves `/metrics` on `port` + `ordinal` for as long as the context lasts; gives the port. 0 serves nothing.

    `ordinal` is the worker's place in its pod, from 0. What hinders it is a warning: a worker works without being watched.
    """
    if port == 0:
        yield None
        return
    chosen = port + ordinal
    registry = CollectorRegistry()
    registry.register(measures)
    ProcessCollector(registry=registry)
    try:
        server, thread = start_http_server(chosen, addr=host, registry=registry)
    except (OSError, OverflowError) as error:
        log.warning(
            "no metrics of this worker: the port cannot be had",
            action="metrics_unavailable",
            host=host,
            port=chosen,
            error=getattr(error, "strerror", None) or str(error),
        )
        yield None
        return
    log.info("metrics of this worker", action="metrics_listening", host=host, port=server.server_port)
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)
