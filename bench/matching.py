"""How well and how fast listings are grouped into products, beside Splink, word overlap and the former rule.

    python bench/matching.py [--json] [--listings 1000000] [--stores 2000] [--products 60000] [--parts recorded million…]

    recorded      the development half of `../shared/data/matching` (its README says how an answer is judged): Pennsylvania between
                  sellers, New Mexico's catalog entries with their ids withheld (`names`) and told (`ids`). Every side is a process
                  of its own on the same rows; seconds are of grouping, without start-up and reading; memory is the process's peak.
                  Of Splink's thresholds the one with the best F1 on these pairs counts, and its m probabilities are taken from
                  the pairs that are the same: both favour Splink, whose training without labels does not separate these rows.
    million       generated listings of known truth (bench/matching/market.py): seconds, peak memory, and as a check of sanity the
                  precision and recall over pairs of listings of one true product, sampled

`brands_left_out`: five folds of the brands by a hash of the brand's family; for each the weights are learned without labels from the
other brands' listings only, and its own pairs are judged.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import msgspec  # noqa: E402
from tests.recorded.matching_truth import Truth, between_sellers, new_mexico, new_mexico_menus, pennsylvania  # noqa: E402

import sheet  # noqa: E402
from matching import judge, market  # noqa: E402
from peer_python import ours, python_with  # noqa: E402

SIDES = ("menuwatch", "splink", "overlap", "former")
SECONDS = 900.0
"""The aim for a million listings on two cores."""
MEGABYTES = 4096.0
_PATIENCE = 3600
_SAMPLE = 20_000
"""Listings of which all pairs inside their groups and products count."""


def say(text: str) -> None:
    """Progress, which is no result."""
    print(text, file=sys.stderr, flush=True)


def run_side(name: str, rows: Path, groups: Path, labels: Path | None = None) -> dict[str, Any]:
    """Runs one side in a process of its own; {"missing": why} if it cannot run here."""
    runtime = python_with(HERE / "matching") if name == "splink" else ours()
    if runtime.missing:
        return {"missing": runtime.missing}
    more = [str(labels)] if name == "splink" and labels else []
    command = [runtime.python, str(HERE / "matching" / "sides" / f"{name}_side.py"), str(rows), str(groups), *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE)
    if done.returncode:
        raise SystemExit(f"{name} failed: {done.stderr.strip()[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def compare(title: str, truth: Truth, folder: Path) -> dict[str, Any]:
    """All sides on one set of rows."""
    rows, labels = folder / "rows.jsonl", folder / "labels.json"
    with rows.open("w", encoding="utf-8") as file:
        for one in truth.listings:
            known = {"grams": truth.grams.get(one.listing_id), "price": truth.prices.get(one.listing_id)}
            file.write(json.dumps({**msgspec.to_builtins(one), **known}) + "\n")
    labels.write_text(json.dumps([(p.a, p.b) for p in between_sellers(truth) if p.same]), encoding="utf-8")
    results = {}
    for name in SIDES:
        say(f"{title}: {name}")
        groups = folder / f"{name}.csv"
        cost = run_side(name, rows, groups, labels)
        if "missing" not in cost:
            threshold, chosen = judge.best(truth, judge.answers(groups))
            cost.update(judge.report(truth, chosen), threshold=threshold)
        if name == "menuwatch":
            cost["brands_left_out"] = judge.leave_brands_out(truth, new_mexico_menus())
        results[name] = cost
    return results


def million(count: int, stores: int, true_products: int, folder: Path) -> dict[str, Any]:
    """Menuwatch on generated listings."""
    say(f"making {count:,} listings")
    truth: dict[str, tuple[int, str]] = {}
    rows, groups = folder / "million.jsonl", folder / "million.csv"
    with rows.open("w", encoding="utf-8") as file:
        for row, number in market.listings(count, stores, true_products):
            truth[row["listing_id"]] = (number, row["sizes"][0] if row["category"] not in ("flower", "Flower") else "")
            file.write(json.dumps(row) + "\n")
    say("grouping them")
    cost = run_side("menuwatch", rows, groups)
    found = judge.answers(groups)["group"]
    return {**cost, "listings": count, **sampled(truth, found), "groups": len(set(found.values()))}


def sampled(truth: Mapping[str, tuple[int, str]], found: Mapping[str, str]) -> dict[str, float]:
    """Precision over pairs of one group, recall over pairs of one true product and size: for each sampled listing one of each."""
    by_group: dict[str, list[str]] = defaultdict(list)
    by_product: dict[tuple[int, str], list[str]] = defaultdict(list)
    for one, group in found.items():
        by_group[group].append(one)
        by_product[truth[one]].append(one)
    rng = random.Random(1)
    right, same = [], []
    for one in rng.sample(sorted(found), min(_SAMPLE, len(found))):
        for members, into in ((by_group[found[one]], right), (by_product[truth[one]], same)):
            if len(members) > 1:
                other = rng.choice([i for i in members if i != one])
                into.append(truth[one][0] == truth[other][0] and found[one] == found[other])
    return {"precision": statistics.fmean(right), "recall": statistics.fmean(same)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--listings", type=int, default=1_000_000)
    parser.add_argument("--stores", type=int, default=2_000)
    parser.add_argument("--products", type=int, default=60_000, help="true products")
    parser.add_argument("--parts", nargs="+", choices=("recorded", "million"), default=["recorded", "million"])
    args = parser.parse_args()
    results: dict[str, Any] = {"machine": sheet.machine(), "python": platform.python_version()}
    with tempfile.TemporaryDirectory(prefix="menuwatch-bench-") as name:
        folder = Path(name)
        if "recorded" in args.parts:
            results["pennsylvania"] = compare("Pennsylvania", pennsylvania(), folder)
            results["new_mexico_names"] = compare("New Mexico, names", new_mexico(ids=False), folder)
            results["new_mexico_ids"] = compare("New Mexico, ids", new_mexico(), folder)
        if "million" in args.parts:
            results["million"] = million(args.listings, args.stores, args.products, folder)
    print(json.dumps(results) if args.json else "\n".join(text(results)))


def text(results: Mapping[str, Any]) -> list[str]:
    """The figures for people."""
    lines = [f"{results['machine']}, Python {results['python']}"]
    for part in ("pennsylvania", "new_mexico_names", "new_mexico_ids"):
        if part not in results:
            continue
        lines += ["", f"{part:<24}{'precision':>10}{'recall':>8}{'F1':>8}{'wrong':>7}{'seconds':>9}{'MB':>7}"]
        for name, one in results[part].items():
            if "missing" in one:
                lines.append(f"{name:<24}{one['missing']}")
                continue
            lines.append(
                _line(f"{name} {one['version']}", one["all"]) + f"{one['seconds']:>9.2f}{one['peak_mb']:>7.0f}"
            )
            if name in ("menuwatch", "splink"):
                for split in ("category", "kind", "inside", "brands_left_out"):
                    lines += [_line(f"  {split} {key}", found) for key, found in one.get(split, {}).items()]
    if "million" in results:
        one = results["million"]
        lines.append(
            f"\n{one['listings']:,} listings: {one['seconds']:.0f} s ({sheet.verdict(one['seconds'], '<', SECONDS)}), "
            f"{one['peak_mb']:,.0f} MB ({sheet.verdict(one['peak_mb'], '<', MEGABYTES)}), {one['groups']:,} groups, "
            f"precision {one['precision']:.4f}, recall {one['recall']:.4f}"
        )
    return lines


def _line(title: str, one: Mapping[str, Any]) -> str:
    cells = "".join(f"{'-' if one[key] is None else f'{one[key]:.3f}':>{width}}" for key, width in _COLUMNS)
    return f"{title:<24}{cells}{one['wrong']:>7}"


_COLUMNS = (("precision", 10), ("recall", 8), ("f1", 8))

if __name__ == "__main__":
    main()
