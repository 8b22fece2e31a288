"""Dashboards for Grafana are well formed, and ask for metrics and labels that exist, as docs/reference/metrics.md lists them."""

from __future__ import annotations

import json
import re
from itertools import combinations
from typing import Any

import pytest

from tests.conftest import ROOT

FOLDER = ROOT / "deploy" / "grafana"
METRICS = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
KNOWN = {
    name: (kind, set(re.findall(r"`(\w+)`", labels)))
    for name, kind, labels in re.findall(r"^\| `(menuwatch_\w+)` \| (\w+) \| ([^|]*) \|", METRICS, re.MULTILINE)
}
"""Type and labels of each metric."""
PARTS = {"histogram": ("_bucket", "_sum", "_count")}


def dashboard(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["operations", "market"])
def test_panels_are_well_formed(name: str) -> None:
    board = dashboard(name)
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    (source,) = [one for one in board["templating"]["list"] if one["name"] == "source"]
    for panel in panels:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        assert panel["title"]
        assert panel["description"].endswith(".")
        for target in panel["targets"]:
            assert target["datasource"] == {"type": source["query"], "uid": "${source}"}
    for a, b in combinations([panel["gridPos"] for panel in panels], 2):
        beside = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        assert beside or a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"], (a, b)


def base_of(name: str) -> str:
    """The metric that a time series belongs to: a histogram has three."""
    for metric, (kind, _) in KNOWN.items():
        if name in [metric + part for part in PARTS.get(kind, ())]:
            return metric
    return name


def test_operations_ask_for_metrics_and_labels_that_exist() -> None:
    assert len(KNOWN) > 70
    asked = set()
    for panel in dashboard("operations")["panels"]:
        for target in panel["targets"]:
            expression = target["expr"]
            assert expression.count("(") == expression.count(")"), expression
            series = re.findall(r"menuwatch_\w+", expression)
            names = {base_of(name) for name in series}
            assert names <= KNOWN.keys(), expression
            assert all(KNOWN[base_of(one)][0] != "histogram" or one.endswith("_bucket") for one in series), expression
            labels = {"le"}.union(*(KNOWN[name][1] for name in names))
            used = {word for words in re.findall(r"by \(([\w, ]+)\)", expression) for word in words.split(", ")}
            used |= set(re.findall(r"[{,](\w+)=", expression)) | set(
                re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat", ""))
            )
            assert used <= labels, expression
            counters = {name for name in names if KNOWN[name][0] == "counter"}
            assert all(f"rate({name}" in expression for name in counters), expression
            asked |= names
    assert len(asked) >= 15
