"""The health check of containers: who answers, on which port."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from menuwatch.config.settings import Settings
from menuwatch.scaling.healthcheck import main


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path in ("/healthz", "/metrics") else 404)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def test_a_server_answers_where_it_listens(port: int) -> None:
    assert main(["server"], Settings(host="0.0.0.0", port=port)) == 0
    assert main(["server"], Settings(port=1)) == 1


def test_one_worker_of_a_pod_is_enough(port: int) -> None:
    pod = Settings(metrics_host="0.0.0.0", metrics_port=port - 2, workers_per_pod=3)
    assert main(["worker"], pod) == 0
    assert main(["worker"], Settings(metrics_port=1, workers_per_pod=3)) == 1


def test_what_it_does_not_know_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["worker"], Settings()) == 2
    assert "METRICS_PORT" in capsys.readouterr().err
    assert main([], Settings()) == 2
