"""From the measurements to ratios, JSON and a table."""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from contestants import Contestant
from results import Results

sys.path.append(str(Path(__file__).resolve().parents[1]))  # what all benches share lies there
import sheet

AIMS = {
    "drain_vs_best": (">=", 1.1),
    "keyed_drain_vs_best": (">=", 1.1),
    "enqueue_vs_best": (">=", 1.5),
    "pickup_p95_vs_best": ("<=", 1.0),
    "claim_1m_vs_10k": ("<=", 1.2),
    "claim_history_vs_none": ("<=", 1.2),
    "old_snapshot_cost": ("<", 0.15),
    "keyed_overlaps": ("<=", 0),
}
"""What each ratio should be."""

_DIGITS = 5
_COLUMNS = (
    ("enqueue/s", "enqueue"),
    ("drain/s", "drain"),
    ("keyed enqueue/s", "keyed_enqueue"),
    ("keyed drain/s", "keyed_drain"),
    ("overlaps", "keyed_overlaps"),
    ("two processes", "overlaps_in_two_processes"),
    ("p50 ms", "pickup_p50_ms"),
    ("p95 ms", "pickup_p95_ms"),
    ("large drain/s", "drain_large"),
    ("old snapshot/s", "drain_old_snapshot"),
)


def build(
    args: argparse.Namespace, who: Sequence[Contestant], results: Results, server: dict[str, Any]
) -> dict[str, Any]:
    """The whole report; a figure that was not measured is null."""
    figures = {one.name: _figures(results.figures.get(one.name, {})) for one in who}
    ours = figures.get("menuwatch", {})
    peers = {name: found for name, found in figures.items() if name != "menuwatch"}
    # Who lets jobs of one key overlap has not done the same work.
    exclusive = {name: found for name, found in peers.items() if _overlaps(found) == 0}
    claim = {label: statistics.median(costs) for label, costs in results.claims.items()}
    return {
        "best_peer": _best(peers, "drain"),
        "drain_vs_best": _versus(ours, peers, "drain"),
        "keyed_drain_vs_best": _versus(ours, exclusive, "keyed_drain"),
        "enqueue_vs_best": _versus(ours, peers, "enqueue"),
        "pickup_p95_vs_best": _versus(ours, peers, "pickup_p95_ms", least=True),
        "claim_1m_vs_10k": _ratio(claim.get("x100"), claim.get("base")),
        "claim_history_vs_none": _ratio(claim.get("history"), claim.get("base")),
        "old_snapshot_cost": _cost(ours),
        "keyed_overlaps": _overlaps(ours),
        "best_keyed_peer": _best(exclusive, "keyed_drain"),
        "keyed_drain_vs_any": _versus(ours, peers, "keyed_drain"),
        "fastest_keyed_peer": _best(peers, "keyed_drain"),
        "best_enqueue_peer": _best(peers, "enqueue"),
        "best_pickup_peer": _best(peers, "pickup_p95_ms", least=True),
        "machine": sheet.machine(),
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {**results.versions, "postgresql": server["server_version"], "python": platform.python_version()},
        "server": server,
        "rounds": args.rounds,
        "jobs": args.jobs,
        "pickups_per_round": args.pickups,
        "snapshot_jobs": args.snapshot_jobs,
        "quick": args.quick,
        "claim_ms_per_task": {
            "batch": 50,
            "backlog": args.backlog,
            **{label: sheet.spread(costs, _DIGITS) for label, costs in results.claims.items()},
        },
        "contestants": {
            one.name: {
                "version": results.versions.get(one.name),
                "settings": one.settings,
                "exclusion": one.exclusion,
                **figures[one.name],
                "old_snapshot_cost": _cost(figures[one.name]),
                "left_out": results.failures.get(one.name, {}),
            }
            for one in who
        },
    }


def table(found: dict[str, Any]) -> str:
    """For people: the contestants, the claim, then the ratios beside their aims."""
    durability = ", ".join(f"{key} {found['server'][key]}" for key in ("fsync", "synchronous_commit"))
    lines = [
        f"{found['date']}, {found['machine']}, PostgreSQL {found['versions']['postgresql']} ({durability})",
        f"Medians of {found['rounds']} rounds, {found['jobs']:,} jobs"
        + (": quick, no figures to keep" if found["quick"] else ""),
        "",
    ]
    lines += sheet.side_by_side(found["contestants"], _COLUMNS)
    for name, one in found["contestants"].items():
        lines.extend(f"{name}: no {phase}: {reason}" for phase, reason in one["left_out"].items())
    claim = found["claim_ms_per_task"]
    if "base" in claim:
        base = claim["backlog"]
        shown = {
            "base": f"{base:,} waiting",
            "x10": f"{10 * base:,}",
            "x100": f"{100 * base:,}",
            "history": f"{base:,} and {100 * base:,} finished",
        }
        lines += [
            "",
            "claim, ms per task: "
            + "; ".join(f"{text}: {claim[label]['median']:.4f}" for label, text in shown.items()),
        ]
    best = {
        "drain_vs_best": "best_peer",
        "keyed_drain_vs_best": "best_keyed_peer",
        "enqueue_vs_best": "best_enqueue_peer",
        "pickup_p95_vs_best": "best_pickup_peer",
    }
    lines += ["", f"{'ratio':<22}  {'value':>8}  {'aim':>7}"]
    for key, (sign, aim) in AIMS.items():
        value = found[key]
        against = f", against {found[best[key]]}" if key in best and value is not None else ""
        lines.append(
            f"{key:<22}  {sheet.number(value):>8}  {f'{sign} {aim:g}':>7}  {sheet.verdict(value, sign, aim)}{against}"
        )
    if found["fastest_keyed_peer"] != found["best_keyed_peer"]:
        lines.append(
            f"With keys {found['fastest_keyed_peer']} lets jobs overlap; against it: {sheet.number(found['keyed_drain_vs_any'])}"
        )
    return "\n".join(lines)


def _figures(rounds: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    return {key: sheet.spread(values, _DIGITS) for key, values in rounds.items()}


def _overlaps(figures: dict[str, Any]) -> float | None:
    """The most that any round saw; None where nothing was seen at all."""
    seen = [figures[key]["max"] for key in ("keyed_overlaps", "overlaps_in_two_processes") if key in figures]
    return max(seen, default=None)


def _best(peers: dict[str, Any], key: str, *, least: bool = False) -> str | None:
    there = [name for name, found in peers.items() if key in found]
    if not there:
        return None
    return (min if least else max)(there, key=lambda name: float(peers[name][key]["median"]))


def _versus(ours: dict[str, Any], peers: dict[str, Any], key: str, *, least: bool = False) -> float | None:
    best = _best(peers, key, least=least)
    return None if best is None or key not in ours else _ratio(ours[key]["median"], peers[best][key]["median"])


def _cost(figures: dict[str, Any]) -> float | None:
    ratio = _ratio(*(figures.get(key, {}).get("median") for key in ("drain_old_snapshot", "drain_large")))
    return None if ratio is None else round(1 - ratio, 3)


def _ratio(one: float | None, other: float | None) -> float | None:
    return None if one is None or not other else round(one / other, 3)
