"""Pictures as files: which drawing a subject gets, and its bytes as JPEG, PNG or WebP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from menuwatch.sim.pictures import accessories, packages
from menuwatch.sim.pictures.drawing import WIDE, Drawing, dark, light
from menuwatch.sim.pictures.lettering import wrapped, written
from menuwatch.sim.pictures.subject import Subject, View

SIZE = 400
"""Width and height of every picture, in pixels: as large as the public site shows them."""

_LOADER = "VipsForeignLoadSvgBuffer"
_SAVE_OPTIONS: dict[str, dict[str, Any]] = {
    "png": {"compression": 3, "filter": "none"},
    "webp": {"Q": 82, "effort": 0},
    "jpeg": {"Q": 86},
}

_PACKAGES: Mapping[str, Callable[[Drawing], None]] = {
    "Flower": packages.flower_jar,
    "Small Buds": packages.small_buds_jar,
    "Ground Flower": packages.flower_pouch,
    "Pre-Roll": packages.preroll_tube,
    "Infused Pre-Roll": packages.preroll_tube,
    "PR 2pk": packages.preroll_box,
    "Cartridge": packages.cartridge,
    "Cured Resin Cartridge": packages.cartridge,
    "Live Resin Disposable": packages.disposable,
    "Live Sugar": packages.concentrate_jar,
    "Badder": packages.concentrate_jar,
    "Rosin": packages.concentrate_jar,
    "Gummies": packages.gummies_pouch,
    "Chocolate": packages.chocolate_bar,
    "Seltzer": packages.can,
    "Tincture": packages.dropper_bottle,
    "Drops": packages.dropper_bottle,
    "Balm (500mg)": packages.tin,
    "Lotion": packages.lotion_tube,
    "10mg Troche": packages.pill_bottle,
    "Capsules": packages.pill_bottle,
    "Battery": accessories.battery,
    'Brush 2"': accessories.brush,
    "Grinder": accessories.grinder,
    "Serving Tray (7x5)": accessories.tray,
}
"""By the market's nouns."""


def draw(subject: Subject) -> Drawing:
    """The drawing of a subject."""
    d = Drawing(subject)
    if subject.view is View.LOGO:
        _logo(d)
        return d
    d.background()
    package = _PACKAGES[subject.noun]
    close_up = _CONTENTS.get(subject.noun) or _CONTENTS.get(subject.category)
    if subject.view is View.CONTENTS and close_up is not None:
        close_up(d)
    elif subject.view is View.CONTENTS:
        d.group("translate(200 200)scale(1.22)rotate(-7)translate(-200 -200)", lambda: package(d))
    else:
        package(d)
    return d


def encode(subject: Subject, kind: str) -> bytes:
    """The picture as a file of a kind (png, jpeg or webp)."""
    import pyvips  # imported only when needed

    # Menuwatch refuses SVG in its own processes, and goes on to do so where a test has both in one.
    pyvips.operation_block_set(_LOADER, False)
    try:
        image = pyvips.Image.svgload_buffer(draw(subject).svg(SIZE)).flatten(background=255)
    finally:
        pyvips.operation_block_set(_LOADER, True)
    data: bytes = image.write_to_buffer(f".{kind}", **_SAVE_OPTIONS[kind])
    return data


def _logo(d: Drawing) -> None:
    """The sign of a brand: a leaf, an initial or rings, and the name."""
    style, name = d.style, d.subject.brand or "No brand"
    ground = ("#ffffff", style.brand, light(style.brand, 0.86))[style.layout]
    ink = (style.brand, style.ink, dark(style.brand, 0.25))[style.layout]
    d.box(0, 0, WIDE, WIDE, ground)
    if style.layout == 0:
        d.leaf(200, 196, 124, ink)
    elif style.layout == 1:
        d.add(f'<circle cx="200" cy="150" r="92" fill="none" stroke="{ink}" stroke-width="7"/>')
        d.add(written(name.lstrip("(& ")[:1], 200, 200, size=100, width=110, colour=ink, weight=1.5))
    else:
        for i, (x, y) in enumerate(d.ring(200, 150, 44, 6)):
            d.add(f'<circle cx="{x:.5g}" cy="{y:.5g}" r="46" fill="{ink if i % 2 else style.brand}" opacity=".45"/>')
    for i, line in enumerate(lines := wrapped(name) if len(name) > 10 else [name]):
        y = (314, 296)[len(lines) - 1] + i * 46
        d.add(written(line, 200, y, size=34, width=310, colour=ink, weight=1.8))


def _buds(d: Drawing) -> None:
    for x, y, size in ((132, 244, 150), (286, 266, 128), (206, 190, 210)):
        d.shadow(x, y + size * 0.5, size * 0.5, size * 0.08)
        d.bud(x, y, size)


def _prerolls(d: Drawing) -> None:
    infused = "Infused" in d.subject.noun
    for x, turn in ((140, 24), (206, 4), (262, -20)):
        packages.preroll(d, x, 348, turn, size=1.4, infused=infused)


def _dish(d: Drawing) -> None:
    d.shadow(200, 300, 170, 20)
    d.add(
        '<ellipse cx="200" cy="236" rx="160" ry="96" fill="#eef2f2" stroke="#b9c3c4" stroke-width="4"/>',
        '<ellipse cx="200" cy="230" rx="142" ry="82" fill="#fbfdfd" stroke="#d5dcdd" stroke-width="2"/>',
    )
    packages.dab(d, 200, 228, 112, 60)


def _gummies(d: Drawing) -> None:
    for x, y in ((110, 130), (210, 108), (306, 140), (150, 226), (262, 232), (96, 306), (204, 322), (312, 316)):
        packages.gummy(d, x + d.rng.uniform(-8, 8), y, 84, d.rng.uniform(-24, 24))


def _pills(d: Drawing) -> None:
    for _ in range(14):
        packages.pill(d, d.rng.uniform(80, 320), d.rng.uniform(100, 310), d.rng.uniform(0, 180), 1.7)


_CONTENTS: Mapping[str, Callable[[Drawing], None]] = {
    "Flower": _buds,
    "Pre-Rolls": _prerolls,
    "Concentrate": _dish,
    "Gummies": _gummies,
    "Oral": _pills,
}
"""Close-ups, by noun or category; of all else the package is shown from nearer."""
