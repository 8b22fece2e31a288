"""From the measurements to ratios, JSON and a table."""

from __future__ import annotations

from typing import Any


def build(**parts: Any) -> dict[str, Any]:
    return {"figures": parts["results"].figures, "failures": parts["results"].failures, "versions": parts["versions"], "server": parts["server"]}


def table(found: dict[str, Any]) -> str:
    return str(found)
