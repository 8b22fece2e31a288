"""From the measurements to ratios, JSON and a table."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import sheet
from fetch.contestants import BARE, OURS, Contestant
from fetch.stage import Size

AIMS = {"vs_curl_cffi": 0.75, "vs_crawlee": 1.0, "vs_scrapy": 1.0}
"""What each ratio should reach; beside the two frameworks, ahead."""

_COLUMNS = (
    ("pages/s", "pages_per_second"),
    ("pages/CPU s", "pages_per_cpu_second"),
    ("CPU ms/page", "cpu_ms_per_page"),
    ("core busy", "core_busy"),
    ("database ms", "database_cpu_ms_per_page"),
    ("platform ms", "platform_cpu_ms_per_page"),
    ("requests/page", "requests_per_page"),
)


def build(
    who: Sequence[Contestant],
    figures: dict[str, list[dict[str, float]]],
    failures: dict[str, str],
    size: Size,
    **more: Any,
) -> dict[str, Any]:
    """The whole report; a ratio that could not be measured is null. Ratios are of pages per processor second."""
    medians = {
        name: {key: sheet.spread([one[key] for one in rounds], 4) for key in rounds[0]}
        for name, rounds in figures.items()
        if rounds
    }

    def versus(name: str, key: str) -> float | None:
        if OURS not in medians or name not in medians:
            return None
        return round(medians[OURS][key]["median"] / medians[name][key]["median"], 3)

    others = [one for one in who if one.name != OURS]
    return {
        "vs_curl_cffi": versus(BARE, "pages_per_cpu_second"),
        "vs_crawlee": versus("crawlee", "pages_per_cpu_second"),
        "vs_scrapy": versus("scrapy", "pages_per_cpu_second"),
        "wall": {f"vs_{one.name}": versus(one.name, "pages_per_second") for one in others},
        "with_database": {f"vs_{one.name}": versus(one.name, "pages_per_cpu_second_with_database") for one in others},
        "machine": sheet.machine(),
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "stores": size.stores,
        "pages": size.pages,
        "products_per_page": size.per_page,
        "concurrency": size.concurrency,
        **more,
        "contestants": {
            one.name: {
                "version": version(one),
                "settings": one.settings,
                **medians.get(one.name, {}),
                "left_out": failures.get(one.name),
            }
            for one in who
        },
    }


def version(who: Contestant) -> str | None:
    """The version of the contestant's package."""
    runtime = who.runtime()
    if runtime.missing:
        return None
    if runtime.python == sys.executable:
        return importlib.metadata.version(who.package)
    asked = f"import importlib.metadata as m; print(m.version({who.package!r}))"
    return (
        subprocess.run([runtime.python, "-c", asked], capture_output=True, text=True, check=False).stdout.strip()
        or None
    )


def table(found: dict[str, Any]) -> str:
    """For people: the contestants, then the ratios beside their aims."""
    lines = [
        f"{found['date']}, {found['machine']}, PostgreSQL {found['postgresql']}, Python {found['python']}",
        f"Medians of {found['rounds']} rounds, {found['stores']} menus of {found['pages']} pages with {found['products_per_page']}"
        f" products, {found['concurrency']} at once" + (": quick, no figures to keep" if found["quick"] else ""),
        "",
    ]
    lines += sheet.side_by_side(found["contestants"], _COLUMNS)
    for name, one in found["contestants"].items():
        if one["left_out"]:
            lines.append(f"{name}: left out: {one['left_out']}")
    lines += ["", f"{'ratio':<14}  {'per CPU s':>9}  {'per s':>9}  {'with database':>13}  {'aim':>7}"]
    for key, aim in AIMS.items():
        value, wall, whole = found[key], found["wall"].get(key), found["with_database"].get(key)
        sign = ">=" if key == "vs_curl_cffi" else ">"
        figures = f"{sheet.number(value):>9}  {sheet.number(wall):>9}  {sheet.number(whole):>13}"
        lines.append(f"{key:<14}  {figures}  {f'{sign} {aim:g}':>7}  {sheet.verdict(value, sign, aim)}")
    return "\n".join(lines)
