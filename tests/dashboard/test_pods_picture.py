"""The picture of pods around the queue: whatever their number, all are seen, none covers another, and colour says nothing alone."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from menuwatch.dashboard.charts import pods as drawing
from menuwatch.workers.pods import PodStatus
from tests.dashboard.worker_rows import pod, worker

SVG = "{http://www.w3.org/2000/svg}"


def drawn(pods: list[PodStatus], selected: str | None = None) -> ElementTree.Element:
    text = str(drawing.picture(pods, 12, lambda name: f"/q?pod={name}", selected))
    text = re.sub(r" data-stay(?=[ >])", "", text).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return ElementTree.fromstring(text)


def links(picture: ElementTree.Element) -> list[ElementTree.Element]:
    return [one for one in picture.iter(f"{SVG}a") if "pod" in one.attrib["class"].split()]


@pytest.mark.parametrize("count", [*range(62), 90, 200])
def test_no_pod_touches_another_or_the_middle_and_all_are_seen(count: int) -> None:
    plan = drawing.plan(count)
    assert len(plan.places) == count
    for n, (x, y) in enumerate(plan.places):
        for other in plan.places[:n]:
            assert math.dist((x, y), other) >= 2 * plan.reach
        assert math.hypot(x, y) >= drawing.HUB + plan.reach
        assert y + plan.reach + 12 <= plan.strip, "the card covers a pod or its name"
        assert plan.left <= x - plan.reach
        assert x + plan.reach <= plan.left + plan.width
        assert plan.top <= y - plan.reach
    assert plan.strip >= drawing.HUB, "the card covers the hub"
    assert plan.strip + 8 * plan.letter <= plan.top + plan.height


@pytest.mark.parametrize("count", [0, 1, 15, 40])
def test_every_pod_is_a_link_that_says_everything(count: int) -> None:
    picture = drawn([pod(f"Pod{n}", task_ids=[1, 2]) for n in range(count)])
    found = links(picture)
    assert [one.attrib["href"] for one in found] == [f"/q?pod=Pod{n}" for n in range(count)]
    for n, one in enumerate(found):
        said = " ".join(text.text or "" for text in one.iter(f"{SVG}text"))
        assert f"Pod{n}: 5 workers, 10 of 15 slots busy, CPU 20 %, memory 30 %" in said
        assert len([mark for mark in one.iter(f"{SVG}path") if "mark" in mark.attrib["class"].split()]) == 5
    hub = next(one for one in picture.iter(f"{SVG}a") if one.attrib["class"] == "hub")
    assert [text.text for text in hub.iter(f"{SVG}text")][:2] == ["12", "ready"]


@pytest.mark.parametrize(
    ("share", "level"),
    [(0.0, "good"), (0.499, "good"), (0.5, "warn"), (0.749, "warn"), (0.75, "amber"), (0.899, "amber"), (0.9, "bad"), (1.2, "bad")],
)  # fmt: skip
def test_colours_follow_the_thresholds_of_the_specification(share: float, level: str) -> None:
    assert drawing.level(share) == level
    (link,) = links(drawn([pod("A", ["active"], cpu=0.1, memory=share)]))
    assert level in link.attrib["class"].split()


def test_a_pod_is_as_full_as_its_own_live_processes_together() -> None:
    full = PodStatus(
        name="A",
        workers=[
            worker("a", cpu=0.5, memory=0.2),
            worker("b", cpu=0.3, memory=0.2),
            worker("c", cpu=0.99, state="silent"),
        ],
    )
    assert (full.load, full.cpu, full.memory) == (0.8, 0.8, 0.4)
    shared = [worker("a", pid=7, cpu=0.5), worker("b", pid=7, cpu=0.5), worker("c", pid=8, cpu=0.25)]
    assert PodStatus(name="P", workers=shared).cpu == 0.75, "two workers of one process"
    assert PodStatus(name="B", workers=[worker("c", cpu=None, memory=None)]).load is None
    assert drawing.level(None) == "none"


def test_an_idle_pod_is_not_red_for_what_else_its_machine_does() -> None:
    idle = pod("A", cpu=0.0, memory=0.01, machine_cpu=0.99, machine_memory=0.95)
    assert (idle.machine_cpu, idle.machine_memory) == (0.99, 0.95)
    (link,) = links(drawn([idle]))
    assert "good" in link.attrib["class"].split()
    assert not [one for one in link.iter() if "bad" in one.attrib.get("class", "").split()]


def test_the_ring_is_as_long_as_the_pod_is_busy() -> None:
    (link,) = links(drawn([PodStatus(name="A", workers=[worker("a", task_ids=[1, 2, 3], slots=4)])]))
    (ring,) = [one for one in link.iter(f"{SVG}circle") if one.attrib["class"] == "ring"]
    shown, whole = (float(part) for part in ring.attrib["stroke-dasharray"].split())
    assert shown / whole == pytest.approx(0.75, abs=0.01)
    assert whole == pytest.approx(2 * math.pi * float(ring.attrib["r"]), abs=0.1)


def test_states_differ_by_shape_and_word() -> None:
    states = ("active", "backing_off", "paused", "stopping", "silent")
    (link,) = links(drawn([pod("A", states, why="memory at 97 %")]))
    marks = {one.attrib["class"].split()[-1]: one.attrib["d"] for one in link.iter(f"{SVG}path")}
    assert set(marks) == set(states)
    # One that leaves has the shape of one at work, without the filling.
    assert len(set(marks.values())) == 4
    said = " ".join(text.text or "" for text in link.iter(f"{SVG}text"))
    assert "1 backing off, 1 paused, 1 stopping, 1 silent, memory at 97 %" in said
    assert "0 of 12 slots" in said
    (gone,) = links(drawn([pod("B", ("silent",) * 5)]))
    assert "silent" in gone.attrib["class"].split()
    assert "silent" in [text.text for text in gone.iter(f"{SVG}text")]


def test_the_selected_pod_is_marked_for_readers_as_well() -> None:
    found = {one.attrib["href"]: one for one in links(drawn([pod("A"), pod("B")], "B"))}
    assert "aria-current" not in found["/q?pod=A"].attrib
    assert found["/q?pod=B"].attrib["aria-current"] == "true"


@settings(max_examples=50, deadline=None)
@given(name=st.text(min_size=1, max_size=80), why=st.text(max_size=200))
def test_names_and_reasons_stay_text(name: str, why: str) -> None:
    text = str(drawing.picture([pod(name, ("backing_off",), why=why)], 0, lambda _: "/"))
    plain = re.sub(r"<(/?)(svg|line|a|circle|text|g|path|foreignObject|div|strong|dl|dt|dd|p)\b[^<>]*>", "", text)
    assert "<" not in plain
    assert ">" not in plain
    assert "style=" not in re.sub(r">[^<]*<", "><", text)
