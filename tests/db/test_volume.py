"""The bench of a catalogue of millions, at a size that a test can wait for: it applies what it says, and its figures are of that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conftest import in_memory

BENCH = Path(__file__).parents[2] / "bench" / "volume.py"
STORES, PRODUCTS, CRAWLS = 8, 40, 3


def test_history_costs_what_changes() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCH), "--stores", str(STORES), "--products", str(PRODUCTS), "--crawls", str(CRAWLS), "--json"],
        capture_output=True, text=True, timeout=170, check=False,
        env={**os.environ, "TMPDIR": in_memory() or tempfile.gettempdir()},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["snapshots"] == STORES * PRODUCTS * CRAWLS
    assert [len(found["crawls"]), len(found["waits_ms"])] == [CRAWLS, 5]
    assert found["product_history"] == found["changes"] > 0, (
        "a row of history for each change, and none for what stayed"
    )
    for name in ("cost_growth", "history_p95_ms", "menu_p95_ms", "bytes_per_snapshot", "parquet_bytes_per_snapshot"):
        assert found[name] > 0, name
    assert found["peak_rss_mb"] < 500
