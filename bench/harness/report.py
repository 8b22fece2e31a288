"""The result as text."""

from __future__ import annotations

from typing import Any

Results = dict[str, dict[str, Any]]
"""By cell, then by system."""


def text(results: Results, groups: dict[str, list[str]]) -> str:
    """Tables of the groups that were measured."""
    makers = {"throughput": _throughput, "pickup": _pickup, "pressure": _pressure, "chaos": _chaos}
    return "\n\n".join(
        table
        for group, cells in groups.items()
        if (table := makers[group]({c: results[c] for c in cells if c in results}))
    )


def _throughput(results: Results) -> str:
    rows = [["jobs/s", *(f"W={cell.rpartition('_')[2]}" for cell in results), "best"]]
    for system in _systems(results):
        rates = [_phase(results[cell].get(system), "clean", "completion_rate") for cell in results]
        rows.append(
            [system, *map(_number, rates), _number(max((rate for rate in rates if rate is not None), default=None))]
        )
    return _table(rows) if results else ""


def _pickup(results: Results) -> str:
    return "\n".join(
        _table(
            [["pick-up, ms", "p50", "p95", "p99", "jobs/s"]]
            + [
                [system, *(_number(_phase(found, "clean", name)) for name in (*_CLAIM, "completion_rate"))]
                for system, found in results[cell].items()
            ]
        )
        for cell in results
    )


_CLAIM = ("claim_p50_ms", "claim_p95_ms", "claim_p99_ms")


def _pressure(results: Results) -> str:
    head = [
        "pressure",
        "cell",
        "clean/s",
        "stress/s",
        "ratio",
        "p95 clean",
        "p95 stress",
        "dead",
        "dead/job",
        "drained s",
        "unfinished",
        "passed",
    ]
    rows = [head]
    for cell, by_system in results.items():
        for system, found in by_system.items():
            clean, stress = ([_phase(found, label, name) for name in _SHOWN] for label in ("clean", "stress"))
            rates = (clean[0], stress[0], found.get("ratio"), clean[1], stress[1], stress[2], stress[3])
            rows.append([system, cell, *map(_number, rates), *_outcome(found)])
    return _table(rows) if results else ""


_SHOWN = ("completion_rate", "claim_p95_ms", "dead_tuples", "dead_rows_per_job")


def _chaos(results: Results) -> str:
    rows = [
        ["chaos", "cell", "before/s", "after/s", "ratio", "enqueued", "repeated", "drained s", "unfinished", "passed"]
    ]
    for cell, by_system in results.items():
        for system, found in by_system.items():
            rates = [_phase(found, label, "completion_rate") for label in ("baseline", "recovery")]
            jobs = found.get("jobs", {})
            rows.append(
                [
                    system,
                    cell,
                    *map(_number, (*rates, found.get("ratio"), jobs.get("enqueued"), jobs.get("repeated"))),
                    *_outcome(found),
                ]
            )
    return _table(rows) if results else ""


def _outcome(found: dict[str, Any]) -> list[str]:
    if "failed" in found:
        return ["", "", f"no: {found['failed'].splitlines()[-1][:60]}"]
    return [
        _number(found["drained_seconds"]) if found["drained_seconds"] is not None else "never",
        _number(found["jobs"]["unfinished"]),
        "yes" if found["passed"] else "no",
    ]


def _systems(results: Results) -> list[str]:
    return list(dict.fromkeys(system for by_system in results.values() for system in by_system))


def _phase(found: dict[str, Any] | None, label: str, name: str) -> Any:
    return ((found or {}).get("phases", {}).get(label) or {}).get(name)


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def _table(rows: list[list[str]]) -> str:
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            text.ljust(width) if n < 2 else text.rjust(width)
            for n, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
