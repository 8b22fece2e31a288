"""What libraries log becomes lines of ours, and the same line again and again becomes one with a count."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from menuwatch.core import logging as telemetry


@pytest.fixture(autouse=True)
def _root_as_before() -> Iterator[None]:
    root = logging.getLogger()
    before = root.handlers[:]
    yield
    root.handlers[:] = before


def test_a_line_of_a_library_that_repeats_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    telemetry.configure("json", stream=out)
    telemetry.configure("json", stream=out)  # a second time does not double it
    library = logging.getLogger("asyncio")
    for number in range(1000):
        library.error("accept: out of resource\nsocket: %d", number)
    library.warning("another message of %s", "its own")
    library.info("not worth a line")
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [(line["level"], line["event"], line["action"], line["library"]) for line in lines] == [
        ("error", "accept: out of resource\nsocket: 0", "library_log", "asyncio"),
        ("warning", "another message of its own", "library_log", "asyncio"),
    ]
    monkeypatch.setattr(telemetry, "_REPEAT_SECONDS", 0.0)
    library.error("accept: out of resource\nsocket: %d", 1001)
    assert json.loads(out.getvalue().splitlines()[-1])["suppressed"] == 999
