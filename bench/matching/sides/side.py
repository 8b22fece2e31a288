"""What every side does alike: read listings, group them while the clock runs, write the groups, say what it cost.

    python SIDE.py LISTINGS.jsonl GROUPS.csv

Prints one JSON object: version, seconds (of grouping, without start-up, reading and writing) and the process's peak memory.
"""

from __future__ import annotations

import csv
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

type_rows = list[dict[str, Any]]
Answer = tuple[list[str], list[list[Any]]]
"""Names of the columns of groups, and for each listing its group in each."""


def serve(version: str, group: Callable[[type_rows], Sequence[Any] | Answer]) -> None:
    """Runs `group` on the rows of a file; it gives a group for each row, or several columns of groups."""
    source, target = sys.argv[1:3]
    with Path(source).open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    started = time.perf_counter()
    found = group(rows)
    seconds = time.perf_counter() - started
    columns, groups = found if isinstance(found, tuple) else (["group"], [[one] for one in found])
    with Path(target).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["listing_id", *columns])
        for row, values in zip(rows, groups, strict=True):
            writer.writerow([row["listing_id"], *values])
    # Not ru_maxrss, which starts with the memory of the process that started this one.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = int(status.split("VmHWM:", 1)[1].split(maxsplit=1)[0]) / 1024
    print(json.dumps({"version": version, "seconds": seconds, "peak_mb": peak}))
