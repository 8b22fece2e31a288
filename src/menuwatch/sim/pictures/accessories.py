"""Things that are not packed: a battery, a brush, a grinder, a tray, with the brand's leaf or name on them."""

from __future__ import annotations

from menuwatch.sim.pictures.drawing import Drawing, dark, light
from menuwatch.sim.pictures.lettering import written

_FINISHES = ("#2b2e31", "#b8bec3", "#a8763c", "#3e6f8f", "#8f3e4a", "#4b7a52")


def _finish(d: Drawing) -> str:
    return (
        d.style.brand
        if d.subject.brand is not None and d.subject.salt % 2
        else _FINISHES[d.subject.salt % len(_FINISHES)]
    )


def _name(d: Drawing) -> str:
    return d.subject.brand or ""


def battery(d: Drawing) -> None:
    """A battery for cartridges, lying across."""
    colour = _finish(d)
    d.shadow(200, 322, 150, 12)

    def rod() -> None:
        d.box(176, 40, 48, 270, d.round_side(colour), 14)
        d.box(182, 24, 36, 22, d.round_side("#c9cfd3"), 3)
        d.add('<path d="M182 30h36M182 36h36M182 42h36" stroke="#7f878b" stroke-width="1.6"/>')
        d.add(
            f'<circle cx="200" cy="92" r="13" fill="{dark(colour)}" stroke="{light(colour, 0.5)}" stroke-width="2.5"/>'
        )
        d.leaf(200, 97, 11, "#8fe39b")
        d.box(178, 296, 44, 16, d.round_side("#c9cfd3"), 6)

    d.group("rotate(38 200 180)", rod)
    name = written(_name(d), 0, 0, size=13, width=130, colour=light(colour, 0.8))
    d.add(f'<g transform="rotate(38 200 180)translate(207 216)rotate(-90)">{name}</g>')


def brush(d: Drawing) -> None:
    """A cleaning brush with a wooden handle."""
    d.shadow(200, 322, 140, 12)
    hairs = "".join(
        f"M{150 + i * 2.2:.4g} 96L{146 + i * 2.37 + d.rng.uniform(-4, 4):.4g} {40 + d.rng.uniform(-5, 5):.4g}"
        for i in range(46)
    )

    def whole() -> None:
        d.add(f'<path d="{hairs}" stroke="#3a3530" stroke-width="2" stroke-linecap="round"/>')
        d.box(146, 92, 108, 34, d.round_side("#c3c9cc"), 4)
        wood = d.gradient((0, "#8a5a2e"), (0.3, "#d3a268"), (0.6, "#b9854b"), (1, "#7a4d25"))
        d.add(
            f'<path d="M148 126H252Q246 160 222 180L216 316Q200 330 184 316L178 180Q154 160 148 126Z" fill="{wood}"/>'
        )
        d.leaf(200, 172, 24, "#5e3b1c")
        name = written(_name(d), 0, 0, size=13, width=110, colour="#5e3b1c")
        d.add(f'<g transform="translate(206 246)rotate(-90)">{name}</g>')

    d.group("rotate(-28 200 190)", whole)


def grinder(d: Drawing) -> None:
    """A grinder of metal, its top engraved with a leaf."""
    colour = _finish(d)
    d.shadow(200, 322, 140)
    for y, high in ((232, 92), (150, 84)):
        d.add(
            f'<path d="M80 {y}V{y + high - 30}Q80 {y + high} 200 {y + high}Q320 {y + high} 320 {y + high - 30}V{y}Z" '
            f'fill="{d.round_side(colour)}"/>'
        )
        grip = "".join(f"M{84 + i * 9.28:.4g} {y + 12}v{high - 40}" for i in range(26))
        d.add(f'<path d="{grip}" stroke="{dark(colour, 0.5)}" stroke-width="2.4" opacity=".6"/>')
    d.add(
        f'<ellipse cx="200" cy="150" rx="120" ry="46" fill="{d.glow(light(colour, 0.5), colour)}" stroke="{dark(colour)}" '
        'stroke-width="2"/>',
        f'<ellipse cx="200" cy="149" rx="106" ry="38" fill="none" stroke="{dark(colour, 0.25)}" stroke-width="2"/>',
        '<g transform="translate(200 166)scale(1 .62)">',
    )
    d.leaf(0, -14, 40, dark(colour, 0.45))
    d.add("</g>", written(_name(d), 200, 184, size=9, width=110, colour=dark(colour, 0.55)))


def tray(d: Drawing) -> None:
    """A tray with round corners and a pattern of leaves."""
    colour = _finish(d)
    d.shadow(200, 322, 160, 14)
    rim = d.gradient((0, light(colour, 0.35)), (0.5, colour), (1, dark(colour)), down=True)
    d.box(36, 92, 328, 226, rim, 34)
    d.box(52, 108, 296, 194, d.gradient((0, dark(colour, 0.2)), (1, light(colour, 0.15)), down=True), 24)
    for row in range(3):
        for column in range(6):
            x, y = 84 + column * 48 + (row % 2) * 20, 152 + row * 58
            if x < 338 and not (row == 1 and 110 < x < 300):
                d.leaf(x, y, 24, light(colour, 0.45), opacity=0.55)
    d.add(written(_name(d) or "Tray", 200, 220, size=30, width=200, colour=light(colour, 0.85), weight=1.7))
