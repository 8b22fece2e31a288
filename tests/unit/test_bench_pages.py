"""The bench of pages asks for everything: a new screen, or a new list of the API, is measured or said to be left out."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import pages_addresses


def test_every_address_is_measured_or_left_out_for_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pages_addresses.never_asked() == []
    left = [one for one in pages_addresses.PAGES if not one.startswith(("/admin/tasks/{task_id}/clone", "/b/"))]
    monkeypatch.setattr(pages_addresses, "PAGES", left)
    assert pages_addresses.never_asked() == ["/admin/tasks/{task_id:int}/clone", "/b/{slug}"]
