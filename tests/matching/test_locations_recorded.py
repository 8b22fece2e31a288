"""The figures of store matching on recorded data: New Mexico's listings, Minneapolis' looks, the four registers."""

from __future__ import annotations

from pathlib import Path

from bench import store_matching


def test_new_mexico(recorded: Path) -> None:
    figures = store_matching.new_mexico(recorded / "market")
    assert figures["precision"] >= 0.99
    assert figures["recall"] >= 0.95
    assert figures["listings_with_licence"] > 120


def test_minneapolis_over_time_and_on_two_platforms(recorded: Path) -> None:
    figures = store_matching.minneapolis(recorded / "market")
    assert figures["numbers_changed"] == 0
    assert figures["locations"] == figures["shops"]
    assert figures["two_platforms"] == {"shops": 90, "precision": 1.0, "recall": 1.0}


def test_colorado_by_two_spellings(recorded: Path) -> None:
    figures = store_matching.colorado(recorded / "market")
    assert figures["precision"] >= 0.98
    assert figures["recall"] >= 0.9


def test_registers_are_read_whole(recorded: Path) -> None:
    figures = store_matching.read_registers(recorded / "market")
    assert {state: (row["lines"], row["retail"]) for state, row in figures.items()} == {
        "NY": (580, 580), "MD": (183, 108), "MA": (1492, 490), "CO": (2661, 1050),
    }  # fmt: skip
    assert all(row["complete"] for row in figures.values())
