"""Runs the cells of the public queue benchmark natively, for Menuwatch and the queues that install from package registries.

    python bench/harness/run.py [--only SYSTEM …] [--cells NAME|GROUP …] [--rounds N] [--json]

Progress goes to standard error. README.md beside this file describes cells and settings.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import cells as catalog
import report
import systems
from server import SETTINGS, Server


def main() -> None:
    """The command line."""
    groups: dict[str, list[str]] = {}
    for cell in catalog.CELLS:
        groups.setdefault(cell.group, []).append(cell.name)
    known = [*groups, *(cell.name for cell in catalog.CELLS)]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only",
        nargs="+",
        choices=systems.NAMES,
        default=list(systems.NAMES),
        metavar="SYSTEM",
        help=", ".join(systems.NAMES),
    )
    parser.add_argument(
        "--cells", nargs="+", choices=known, default=list(groups), metavar="CELL", help=", ".join(known)
    )
    parser.add_argument(
        "--rounds", type=int, default=1, help="how often each cell is measured (default 1); medians are reported"
    )
    parser.add_argument(
        "--scale",
        type=float,
        default=1.0,
        help="multiplies the length of every phase (default 1); below 0.4 they have no sample",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    given = parser.parse_args()
    if given.rounds < 1:
        parser.error("--rounds must be at least 1")
    if not 0.4 <= given.scale <= 100:
        parser.error("--scale must be between 0.4 and 100")
    wanted = [cell for cell in catalog.CELLS if cell.name in given.cells or cell.group in given.cells]
    measured, left_out, version = _measure(given.only, [cell.scaled(given.scale) for cell in wanted], given.rounds)
    results = {
        cell: {system: _middle(rounds) for system, rounds in by_system.items()} for cell, by_system in measured.items()
    }
    if given.json:
        about = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "rounds": given.rounds, "left_out": left_out}
        machine = {"processors": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()}
        server = {"postgresql": version, "settings": SETTINGS}
        print(
            json.dumps(
                {**about, "machine": machine, "server": server, "cells": results, "rounds_of": measured}, indent=1
            )
        )
        return
    print(f"PostgreSQL {version}, {os.cpu_count()} processors, {given.rounds} rounds\n")
    print(report.text(results, groups))
    for name, why in left_out.items():
        print(f"left out: {name}: {why}")


def _measure(
    names: list[str], wanted: list[catalog.Cell], rounds: int
) -> tuple[dict[str, dict[str, list[Any]]], dict[str, str], str]:
    found = [systems.system(name) for name in names]
    left_out = {system.name: system.missing for system in found if system.missing}
    folder = Path(tempfile.mkdtemp(prefix="menuwatch-harness-"))
    folder.chmod(0o755)
    measured: dict[str, dict[str, list[Any]]] = {}
    try:
        server = Server(folder)
        try:
            version = server.execute("SHOW server_version")[0][0]
            for number in range(rounds):
                for cell in wanted:
                    for system in found:
                        if system.missing:
                            continue
                        begin = time.monotonic()
                        result = catalog.run(cell, system, server)
                        measured.setdefault(cell.name, {}).setdefault(system.name, []).append(result)
                        print(f"{number + 1}/{rounds} {cell.name} {system.name}: {_brief(result)} ({time.monotonic() - begin:.0f} s)",
                              file=sys.stderr, flush=True)  # fmt: skip
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return measured, left_out, version


def _brief(result: dict[str, Any]) -> str:
    if "failed" in result:
        return f"failed: {result['failed'].splitlines()[-1]}"
    rates = ", ".join(f"{label} {phase['completion_rate']:,.0f}/s" for label, phase in result["phases"].items())
    return f"{rates}{'' if result.get('passed', True) else ' NOT PASSED'}"


def _middle(rounds: list[Any]) -> Any:
    """The median of every number; of yes and no, whether all rounds say yes; of anything else the first."""
    failed = next((one for one in rounds if isinstance(one, dict) and "failed" in one), None)
    if failed is not None:
        return failed
    first = rounds[0]
    if isinstance(first, dict):
        return {key: _middle([one[key] for one in rounds if key in one]) for key in first}
    if isinstance(first, bool):
        return all(rounds)
    if isinstance(first, int | float) and all(isinstance(one, int | float) for one in rounds):
        return median(rounds)
    return None if None in rounds else first


if __name__ == "__main__":
    main()
