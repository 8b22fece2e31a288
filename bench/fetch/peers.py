"""The Pythons of the contestants: ours, and one with crawlee and Scrapy at the versions of requirements.txt."""

from __future__ import annotations

from pathlib import Path

from peer_python import Runtime, ours, python_with

__all__ = ["Runtime", "ours", "theirs"]


def theirs() -> Runtime:
    """The Python that has crawlee and Scrapy."""
    return python_with(Path(__file__).resolve().parent)
