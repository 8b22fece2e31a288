"""The queue as a hub, pods around it: colour is load, the ring is how busy a pod is, small marks are its workers.

    hub     tasks that are ready
    spoke   bold if the pod has tasks
    pod     fill by load; ring: running tasks by capacity
    mark    a worker, by shape: circle active, diamond backing off, square paused, open circle leaving, cross silent

Hovering, focusing or selecting an element shows a card in the strip below the picture, where it covers neither the hub nor a pod.
Nothing is conveyed by colour alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

from markupsafe import Markup
from msgspec import Struct

from menuwatch.core.format import number, percent, pluralize
from menuwatch.workers.pods import PodStatus, State, WorkerStatus

HUB = 52.0
_CLEAR_X, _CLEAR_Y = 64.0, 16.0
"""Between the hub and the pods nearest to it."""

_LEAST_WIDTH = 460.0
_LETTERS, _LINES = 46, 9
"""The card is as wide as that many letters' heights, and as high as these, whatever the picture's size on the screen."""

_ONE_RING = 18
"""Most pods of a single ring."""

_ORBIT, _MARK, _LABEL, _GAP = 12.0, 4.5, 17.0, 10.0
_MARKS = 24
"""Most marks around a pod."""


class Plan(Struct, frozen=True):
    """Where pods stand: their centres, from the top clockwise, ring by ring; `left`, `top`, `width`, `height` is what is seen. Below
    `strip` there is nothing but the card."""

    radius: float
    places: Sequence[tuple[float, float]]
    left: float
    top: float
    width: float
    height: float
    strip: float

    @property
    def letter(self) -> float:
        """Height of the card's letters."""
        return self.width / _LETTERS

    @property
    def reach(self) -> float:
        """From a pod's centre to the end of its marks."""
        return self.radius + _ORBIT + _MARK


def level(share: float | None) -> str:
    """The class of a load: green under 50 %, yellow to 74, amber to 89, red from 90."""
    if share is None:
        return "none"
    return "bad" if share >= 0.9 else "amber" if share >= 0.75 else "warn" if share >= 0.5 else "good"


def plan(count: int) -> Plan:
    """Places for that many pods: none touches another, and none the middle."""
    radius = 36.0 if count <= 8 else 27.0 if count <= _ONE_RING else 19.0 if count <= 60 else 13.0
    reach = radius + _ORBIT + _MARK
    below = reach + _LABEL
    apart = max(2 * reach, 76.0) + _GAP
    rx, ry = HUB + _CLEAR_X + reach, HUB + _CLEAR_Y + below
    rings: list[tuple[float, float]] = [(rx, ry)]
    if count <= _ONE_RING:
        while _room(*rings[0], apart) < count:
            rings[0] = (rings[0][0] * 1.05, rings[0][1] * 1.05)
    while sum(_room(*ring, apart) for ring in rings) < count:
        rings.append((rings[-1][0] + apart, rings[-1][1] + 2 * reach + _LABEL + _GAP))
    places: list[tuple[float, float]] = []
    for ring, n in zip(rings, _shared(count, [_room(*ring, apart) for ring in rings]), strict=True):
        places += _around(*ring, n)
    sides = [_LEAST_WIDTH / 2, *(abs(x) + max(reach, 40.0) + 6 for x, _ in places)]
    tops = [HUB, *(reach - y for _, y in places)]
    bottoms = [HUB, *(y + below for _, y in places)]
    half, top, bottom = max(sides), max(tops) + 6, max(bottoms) + 10
    return Plan(radius, places, -half, -top, 2 * half, top + bottom + _LINES * 2 * half / _LETTERS, bottom)


def picture(
    pods: Sequence[PodStatus], ready: int, href: Callable[[str | None], str], selected: str | None = None
) -> Markup:
    """The picture. `href` gives the address that selects a pod, of None the one that selects none."""
    found = plan(len(pods))
    placed = list(zip(pods, found.places, strict=True))
    drawn = [_pod(pod, place, found, href(pod.name), pod.name == selected) for pod, place in placed]
    spokes = [_spoke(pod, place, found) for pod, place in placed]
    hub = Markup(
        '<a class="hub" href="{}" data-stay><circle r="{}"/><text class="n" y="2">{}</text>'
        '<text class="what" y="20">ready</text><text class="unseen">in the queue: all pods</text></a>'
    ).format(href(None), HUB, number(ready))
    hint = Markup(
        '<text class="hint" aria-hidden="true" y="{:.1f}" font-size="{:.1f}">Hover or focus a pod for details.</text>'
    ).format(found.strip + _LINES / 2 * found.letter, found.letter)
    return Markup(
        '<svg class="pods{}" viewBox="{:.1f} {:.1f} {:.1f} {:.1f}" role="group" aria-label="Pods around the queue">{}{}{}{}</svg>'
    ).format(
        " dense" if len(pods) > 8 else "", found.left, found.top, found.width, found.height,
        hint, Markup("").join(spokes), hub, Markup("").join(drawn),
    )  # fmt: skip


def _spoke(pod: PodStatus, place: tuple[float, float], found: Plan) -> Markup:
    x, y = place
    far = math.hypot(x, y)
    start, end = HUB / far, 1 - found.radius / far
    return Markup('<line class="spoke{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>').format(
        " busy" if pod.busy else "", x * start, y * start, x * end, y * end
    )


def _pod(pod: PodStatus, place: tuple[float, float], found: Plan, address: str, selected: bool) -> Markup:
    x, y = place
    r = found.radius
    share = min(pod.busy / pod.slots, 1.0) if pod.slots else 0.0
    parts = [
        Markup('<circle class="body" r="{}"/><circle class="track" r="{}"/>').format(r - 4, r),
        _ring(share, r),
        Markup('<text class="name" y="{:.1f}">{}</text>').format(found.reach + 12, _short(pod.name)),
        Markup('<text class="n" y="{:.1f}">{}</text>').format(r * 0.14, f"{pod.busy}/{pod.slots}"),
        Markup('<text class="note" y="{:.1f}">{}</text>').format(r * 0.14 + 12, _note(pod)) if r > 24 else "",
        Markup('<text class="unseen">{}</text>').format(words(pod)),
        *_marks(pod.workers, r + _ORBIT),
    ]
    current = Markup(' aria-current="true"') if selected else ""
    return Markup(
        '<a class="pod {} {}{}" href="{}" data-stay{}><g transform="translate({:.1f} {:.1f})">{}</g>{}</a>'
    ).format(
        level(pod.load), pod.state, " selected" if selected else "", address, current,
        x, y, Markup("").join(parts), _card(pod, found),
    )  # fmt: skip


def _ring(share: float, r: float) -> Markup:
    if not share:
        return Markup("")
    around = 2 * math.pi * r
    return Markup('<circle class="ring" r="{}" stroke-dasharray="{:.1f} {:.1f}" transform="rotate(-90)"/>').format(
        r, around * share, around
    )


def _marks(workers: Sequence[WorkerStatus], orbit: float) -> list[Markup]:
    shown = workers[:_MARKS]
    marks = []
    for n, worker in enumerate(shown):
        angle = 2 * math.pi * n / len(shown) - math.pi / 2
        marks.append(
            Markup('<path class="mark {} {}" d="{}" transform="translate({:.1f} {:.1f})"/>').format(
                level(worker.load),
                worker.state,
                _SHAPES[worker.state],
                orbit * math.cos(angle),
                orbit * math.sin(angle),
            )
        )
    return marks


_CIRCLE = "M-4 0A4 4 0 1 1 4 0A4 4 0 1 1 -4 0Z"
_SHAPES: Mapping[State, str] = {
    "active": _CIRCLE,
    "backing_off": "M0 -5.5L5.5 0L0 5.5L-5.5 0Z",
    "paused": "M-4 -4H4V4H-4Z",
    "stopping": _CIRCLE,
    "silent": "M-4 -4L4 4M4 -4L-4 4",
}


def _key(state: State, shape: str) -> Markup:
    return Markup(
        '<svg class="mark-key" viewBox="-7 -7 14 14" aria-hidden="true"><path class="mark none {}" d="{}"/></svg>'
    ).format(state, shape)


STATES: Mapping[State, str] = {
    "active": "active",
    "backing_off": "backing off",
    "paused": "paused",
    "stopping": "stopping",
    "silent": "silent",
}
"""States of workers, in words."""

KEY = [(state, _key(state, _SHAPES[state]), text) for state, text in STATES.items()]
"""The shapes of workers, with their meaning."""


def words(pod: PodStatus) -> str:
    """The content of the card, as a sentence."""
    parts = [f"{pod.name}: {pluralize(len(pod.workers), 'worker')}, {pod.busy} of {pluralize(pod.slots, 'slot')} busy"]
    if pod.cpu is not None or pod.memory is not None:
        parts.append(f"CPU {percent(pod.cpu)}, memory {percent(pod.memory)}")
    parts += _odd(pod)
    return ", ".join([*parts, *pod.reasons])


def _note(pod: PodStatus) -> str:
    if pod.state in ("silent", "paused"):
        return pod.state
    backing = pod.count("backing_off")
    return {"backing_off": "backing off", "stopping": "stopping"}.get(
        pod.state, f"{backing} backing off" if backing else ""
    )


def _card(pod: PodStatus, found: Plan) -> Markup:
    """In the strip below; hidden from readers, who have all of it in the link's name."""
    lines = [
        ("Tasks", f"{pod.busy} of {pod.slots}"),
        ("CPU", percent(pod.cpu)),
        ("Memory", percent(pod.memory)),
        ("Workers", _crew(pod)),
    ]
    # In the heading: a fifth column, or a second row of them, has no room in the card.
    title = f"{pod.name} · version {', '.join(pod.versions)}" if pod.versions else pod.name
    rows = Markup("").join(Markup("<div><dt>{}</dt><dd>{}</dd></div>").format(name, value) for name, value in lines)
    why = Markup('<p class="why">{}</p>').format("; ".join(pod.reasons)) if pod.reasons else Markup("")
    return Markup(
        '<foreignObject class="pod-card" aria-hidden="true" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" font-size="{:.1f}">'
        '<div class="pod-card-box"><strong>{}</strong><dl>{}</dl>{}</div></foreignObject>'
    ).format(
        found.left + 3, found.strip, found.width - 6, found.top + found.height - found.strip - 3, found.letter, title, rows, why
    )  # fmt: skip


def _crew(pod: PodStatus) -> str:
    return ", ".join([number(len(pod.workers)), *_odd(pod)])


def _odd(pod: PodStatus) -> list[str]:
    """Its workers that are not simply at work, counted."""
    return [f"{n} {text}" for state, text in STATES.items() if state != "active" and (n := pod.count(state))]


def _short(name: str) -> str:
    return name if len(name) <= 12 else name[:11] + "…"


def _room(rx: float, ry: float, apart: float) -> int:
    """How many stand on the ellipse at that distance along it."""
    h = ((rx - ry) / (rx + ry)) ** 2
    length = math.pi * (rx + ry) * (1 + 3 * h / (10 + math.sqrt(4 - 3 * h)))
    # Distances straight across are a little shorter than along.
    return max(int(length / (apart * 1.06)), 1)


def _shared(count: int, room: Sequence[int]) -> list[int]:
    """The pods shared out over rings, each as full as the others."""
    shares, left, space = [], count, sum(room)
    for seats in room:
        n = min(seats, round(left * seats / space)) if space else 0
        shares.append(n)
        left, space = left - n, space - seats
    for at, seats in enumerate(room):
        more = min(left, seats - shares[at])
        shares[at], left = shares[at] + more, left - more
    return shares


_STEPS = 720


def _around(rx: float, ry: float, n: int) -> list[tuple[float, float]]:
    """That many places at equal distances along an ellipse, from the top clockwise; a single one or two stand at the sides."""
    if n == 0:
        return []
    begin = 0.0 if n <= 2 else -math.pi / 2
    points = [
        (rx * math.cos(begin + 2 * math.pi * k / _STEPS), ry * math.sin(begin + 2 * math.pi * k / _STEPS))
        for k in range(_STEPS + 1)
    ]
    walked = [0.0]
    for a, b in itertools.pairwise(points):
        walked.append(walked[-1] + math.dist(a, b))
    places, at = [], 0
    for k in range(n):
        wanted = walked[-1] * k / n
        while walked[at + 1] < wanted:
            at += 1
        places.append(points[at + 1] if wanted - walked[at] > walked[at + 1] - wanted else points[at])
    return places
