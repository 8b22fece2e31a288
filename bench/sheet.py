"""What the reports of all benches have in common: the machine, figures of several rounds, and contestants side by side."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil


def machine() -> str:
    """Processor, memory and kernel."""
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []:
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    memory = psutil.virtual_memory().total / 2**30
    return f"{os.cpu_count()} × {model}, {memory:.0f} GiB, {platform.system()} {platform.release()}"


def spread(values: Sequence[float], digits: int) -> dict[str, float]:
    """Of the rounds of one figure."""
    return {
        "median": round(statistics.median(values), digits),
        "min": round(min(values), digits),
        "max": round(max(values), digits),
    }


def side_by_side(contestants: Mapping[str, Mapping[str, Any]], columns: Sequence[tuple[str, str]]) -> Iterator[str]:
    """A line for each contestant (by name: its version, and spreads by key) under the headings of (heading, key); medians."""
    names = [f"{name} {one['version'] or ''}".strip() for name, one in contestants.items()]
    width = max(map(len, names), default=0)
    yield "  ".join([" " * width, *(f"{heading:>{max(9, len(heading))}}" for heading, _ in columns)])
    for name, one in zip(names, contestants.values(), strict=True):
        cells = [f"{_median(one.get(key)):>{max(9, len(heading))}}" for heading, key in columns]
        yield "  ".join([f"{name:<{width}}", *cells])


def _median(figure: Mapping[str, float] | None) -> str:
    return number(None if figure is None else figure["median"])


def number(value: float | None) -> str:
    """For people; `-` for what was not measured."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 or value == 0 else f"{value:.2f}"


def verdict(value: float | None, sign: str, aim: float) -> str:
    """Whether a figure is where it should be: `sign` is one of >=, >, <=, <."""
    if value is None:
        return "not measured"
    met = {">=": value >= aim, ">": value > aim, "<=": value <= aim, "<": value < aim}[sign]
    return "met" if met else "missed"
