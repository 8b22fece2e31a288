"""What all pictures of products are made of: colours, shadows, leaves, buds, and the labels on packages. SVG, 400 by 400 units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import cos, pi, sin
from random import Random

from menuwatch.sim.pictures.lettering import wrapped, written
from menuwatch.sim.pictures.subject import BRAND_NAMES, Subject, View

WIDE = 400
"""Width and height of the drawing."""
_CROP = "22 8 356 356"
"""What is shown of it, so that packages fill the picture."""

_BRAND_COLOURS = (
    "#1f4e8c", "#8a3b2f", "#4d7c3a", "#e0a526", "#6b8f9c", "#2f6f62", "#5b3f8c", "#1d6fa5", "#3f8f4f", "#c4612c",
    "#8c6d46", "#7a1f2b", "#d9b44a", "#2a2d34", "#b0452f", "#5f8d3b", "#2d8f8a", "#e2703a", "#46618a", "#9b3d2e",
)  # fmt: skip
_NO_BRAND = "#5d6a63"
_TYPE_COLOURS = {"Indica": "#6a4fb3", "Sativa": "#e58a1f", "Hybrid": "#3c9a5f", "CBD": "#2f86c4"}
_FLAVOURS = ("#c8385a", "#e8842c", "#7a3fa0", "#58a33c", "#e6bf2e", "#2f8fb0", "#d65b8f")
_BUD_GREENS = (("#3f6b2c", "#5c8a3b", "#86ad58"), ("#4a5f35", "#6f8548", "#9aab6a"), ("#55506b", "#5d7a45", "#8ea565"))


@dataclass(frozen=True, slots=True)
class Style:
    """Colours of one picture. `brand` is on the package, `ink` is read on it, `accent` marks the strain type, `flavour` is that of the
    contents, `greens` go from dark to light; `layout` is how the brand lays out its labels."""

    brand: str
    ink: str
    accent: str
    flavour: str
    greens: tuple[str, str, str]
    layout: int


def style_of(subject: Subject) -> Style:
    """The brand's colours and layout, and those of the strain."""
    index = BRAND_NAMES.index(subject.brand) if subject.brand is not None else -1
    brand = _BRAND_COLOURS[index] if index >= 0 else _NO_BRAND
    rng = Random("+".join(subject.strains) or f"{subject.salt % 7}")
    return Style(
        brand=brand,
        ink="#ffffff" if _lightness(brand) < 0.62 else "#222222",
        accent=_TYPE_COLOURS.get(subject.strain_type, "#8a8f94"),
        flavour=rng.choice(_FLAVOURS),
        greens=rng.choice(_BUD_GREENS),
        layout=index % 3,
    )


def _lightness(colour: str) -> float:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return (0.299 * red + 0.587 * green + 0.114 * blue) / 255


def mixed(colour: str, other: str, share: float) -> str:
    """So much of the other colour in the first."""
    pairs = ((int(colour[i : i + 2], 16), int(other[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def dark(colour: str, share: float = 0.35) -> str:
    return mixed(colour, "#000000", share)


def light(colour: str, share: float = 0.35) -> str:
    return mixed(colour, "#ffffff", share)


class Drawing:
    """Elements in the order in which they are painted, and the gradients that they use."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.style = style_of(subject)
        self.rng = Random(f"{subject.salt}:{subject.category}:{subject.view}")
        self._defs: dict[str, str] = {}
        self._parts: list[str] = []

    def add(self, *parts: str) -> None:
        self._parts.extend(parts)

    def group(self, transform: str, draw: Callable[[], None]) -> None:
        """What `draw` adds, moved or turned."""
        self._parts.append(f'<g transform="{transform}">')
        draw()
        self._parts.append("</g>")

    def gradient(self, *stops: tuple[float, str], down: bool = False) -> str:
        """A fill from left to right, or down. Stops: (place from 0 to 1, colour)."""
        body = "".join(f'<stop offset="{at:g}" stop-color="{colour}"/>' for at, colour in stops)
        x, y = (0, 1) if down else (1, 0)
        return self._define(f'x1="0" y1="0" x2="{x}" y2="{y}">{body}', "linearGradient")

    def glow(self, inner: str, outer: str, opacity: float = 1.0) -> str:
        """A fill from the middle outwards."""
        end = f' stop-opacity="{opacity:g}"' if opacity < 1 else ""
        body = f'<stop offset="0" stop-color="{inner}"/><stop offset="1" stop-color="{outer}"{end}/>'
        return self._define(f'cx=".42" cy=".38" r=".7">{body}', "radialGradient")

    def round_side(self, colour: str, *, depth: float = 0.35) -> str:
        """The fill of an upright cylinder of that colour."""
        edge, shine = dark(colour, depth), light(colour, depth)
        return self.gradient((0, edge), (0.18, colour), (0.34, shine), (0.55, colour), (1, edge))

    def _define(self, body: str, tag: str) -> str:
        name = self._defs.setdefault(f"{tag} {body}", f"d{len(self._defs)}")
        return f"url(#{name})"

    def svg(self, size: int) -> bytes:
        """The whole picture, so many pixels wide and high."""
        defs = "".join(
            f'<{tag} id="{name}" {body}</{tag}>'
            for (tag, body), name in ((key.split(" ", 1), name) for key, name in self._defs.items())
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" viewBox="{_CROP}">'
            f"<defs>{defs}</defs>{''.join(self._parts)}</svg>"
        ).encode()

    # What packages have on them and beside them.

    def background(self) -> None:
        """White, as most shops have it, or a wall in a pale tint of the brand's colour."""
        dice = self.rng.random()
        if dice < 0.86:
            fill = "#ffffff"
        elif dice < 0.93:
            fill = self.gradient((0, "#fbfbfa"), (0.72, "#eeeeec"), (0.73, "#e6e6e3"), (1, "#f6f6f4"), down=True)
        else:
            tint = self.style.brand
            wall, floor = light(tint, 0.84), light(tint, 0.74)
            fill = self.gradient((0, light(tint, 0.9)), (0.72, wall), (0.73, floor), (1, light(tint, 0.86)), down=True)
        self.add(f'<rect width="{WIDE}" height="{WIDE}" fill="{fill}"/>')

    def shadow(self, x: float, y: float, wide: float, high: float = 14) -> None:
        fill = self._define(
            'cx=".5" cy=".5" r=".5"><stop offset="0" stop-color="#000" stop-opacity=".34"/>'
            '<stop offset="1" stop-color="#000" stop-opacity="0"/>',
            "radialGradient",
        )
        self.add(f'<ellipse cx="{x:.5g}" cy="{y:.5g}" rx="{wide:.5g}" ry="{high:.5g}" fill="{fill}"/>')

    def box(self, x: float, y: float, wide: float, high: float, fill: str, radius: float = 0, more: str = "") -> None:
        self.add(
            f'<rect x="{x:.5g}" y="{y:.5g}" width="{wide:.5g}" height="{high:.5g}" rx="{radius:.5g}" fill="{fill}"{more}/>'
        )

    def leaf(self, x: float, y: float, size: float, colour: str, *, opacity: float = 1.0) -> None:
        """A leaf of seven fingers, whose stalk begins at the point given."""
        fingers = []
        for turn, length in ((-112, 0.42), (-74, 0.68), (-36, 0.9), (0, 1.0), (36, 0.9), (74, 0.68), (112, 0.42)):
            long, half = size * length, size * length * 0.16
            fingers.append(
                f'<path transform="rotate({turn})" d="M0 0Q{-half:.4g} {-long * 0.45:.4g} 0 {-long:.4g}'
                f'Q{half:.4g} {-long * 0.45:.4g} 0 0"/>'
            )
        stalk = f'<path d="M0 0V{size * 0.34:.4g}" stroke="{colour}" stroke-width="{size * 0.05:.3g}"/>'
        self.add(
            f'<g transform="translate({x:.5g} {y:.5g})" fill="{colour}" opacity="{opacity:g}">{"".join(fingers)}{stalk}</g>'
        )

    def bud(self, x: float, y: float, size: float) -> None:
        """A dried flower about so high, with pistils and resin."""
        rng, (deep, green, pale) = self.rng, self.style.greens
        fills = [self.glow(light(c, 0.2), dark(c, 0.25)) for c in (deep, green, green, pale)]
        calyxes = []
        rows = 5 if size < 100 else 9
        for row in range(rows):
            at = row / (rows - 1)
            half = size * (0.12 + 0.68 * at - 0.6 * at * at)
            count = 4 if size < 100 else 6
            for i in range(count):
                place = 2 * i / (count - 1) - 1 + rng.uniform(-0.1, 0.1)
                cx, cy = x + half * place * 1.1, y + size * (at - 0.5) * 0.84
                wide = size * rng.uniform(0.1, 0.14) * (5 / rows) ** 0.5
                high = wide * rng.uniform(1.5, 2.0)
                calyxes.append(
                    f'<path transform="translate({cx:.5g} {cy:.5g})rotate({place * 48:.4g})" fill="{rng.choice(fills)}" '
                    f'd="M0 {-high:.3g}Q{wide:.3g} {-high * 0.2:.3g} {wide * 0.7:.3g} {high * 0.5:.3g}Q0 {high:.3g} '
                    f'{-wide * 0.7:.3g} {high * 0.5:.3g}Q{-wide:.3g} {-high * 0.2:.3g} 0 {-high:.3g}"/>'
                )
        rng.shuffle(calyxes)
        hairs, resin = [], []
        for _ in range(12 if size < 100 else 30):
            cx, cy = x + rng.uniform(-0.26, 0.26) * size, y + rng.uniform(-0.4, 0.38) * size
            hairs.append(
                f"M{cx:.5g} {cy:.5g}q{rng.uniform(-0.1, 0.1) * size:.3g} {-0.09 * size:.3g} "
                f"{rng.uniform(-0.14, 0.14) * size:.3g} {rng.uniform(-0.06, 0.02) * size:.3g}"
            )
        for _ in range(22 if size < 100 else 70):
            cx, cy = x + rng.uniform(-0.32, 0.32) * size, y + rng.uniform(-0.42, 0.4) * size
            resin.append(f"M{cx:.5g} {cy:.5g}h.1")
        self.add(
            *calyxes,
            f'<path d="{"".join(hairs)}" fill="none" stroke="#c9772f" stroke-width="{min(1.6, size * 0.02):.3g}" '
            'stroke-linecap="round"/>',
            f'<path d="{"".join(resin)}" stroke="#fff" stroke-width="{min(2.0, size * 0.022):.3g}" stroke-linecap="round" '
            'opacity=".75"/>',
        )

    def ring(self, x: float, y: float, radius: float, count: int) -> list[tuple[float, float]]:
        """Points on a circle, from the top on."""
        return [(x + radius * sin(2 * pi * i / count), y - radius * cos(2 * pi * i / count)) for i in range(count)]

    def label(self, x: float, y: float, wide: float, high: float, *, radius: float = 4) -> None:
        """The label of a package: its front, or on a picture of its back what the law has there."""
        if self.subject.view is View.BACK:
            self._small_print(x, y, wide, high, radius)
        elif self.subject.brand is None:
            self.box(x, y, wide, high, "#ffffff", radius, ' opacity=".92"')
            self.leaf(x + wide / 2, y + high * 0.64, min(wide, high) * 0.42, light(self.style.brand, 0.3))
        else:
            self._front(x, y, wide, high, radius)

    def _front(self, x: float, y: float, wide: float, high: float, radius: float) -> None:
        subject, style = self.subject, self.style
        plain = style.layout == 0
        ground = "#ffffff" if plain else style.brand if style.layout == 1 else "#1e2022"
        ink = dark(style.brand, 0.2) if plain else style.ink if style.layout == 1 else light(style.brand, 0.55)
        words = "#26292b" if plain else style.ink if style.layout == 1 else "#f2f2ee"
        middle, inner = x + wide / 2, wide * 0.84
        self.box(x, y, wide, high, ground, radius)
        squat = high < wide * 0.62
        if style.layout == 2:
            edge = min(wide, high) * 0.035
            self.box(x + edge, y + edge, wide - 2 * edge, high - 2 * edge, "none", radius * 0.7,
                     f' stroke="{ink}" stroke-width="{max(1.0, edge * 0.3):.3g}"')  # fmt: skip
        if plain and not squat:
            self.box(x, y, wide, high * 0.27, style.brand, radius)
            self.box(x, y + high * 0.15, wide, high * 0.12, style.brand)
            ink = style.ink
        brand_at = y + high * (0.34 if squat else 0.185)
        self.add(
            written(str(subject.brand), middle, brand_at, size=high * (0.2 if squat else 0.105), width=inner, colour=ink,
                    weight=2.1),
        )  # fmt: skip
        if not squat:
            self.leaf(middle, y + high * 0.45, high * 0.13, style.accent if plain else ink)
        lines = [line for strain in subject.strains for line in wrapped(strain, 1 if len(subject.strains) > 1 else 2)]
        if not lines:
            lines = wrapped(subject.noun)
        top, bottom = (0.42, 0.74) if squat else (0.55, 0.76)
        if squat and len(lines) > 1:
            lines = [" X ".join(subject.strains) or subject.noun]
        step = high * (bottom - top) / 2
        for i, line in enumerate(lines[:2]):
            down = step * (i + (0.95 if len(lines) > 1 else 1.3))
            self.add(
                written(line, middle, y + high * top + down, size=step * 0.7, width=inner, colour=words, weight=1.6)
            )
        strip = y + high * (0.78 if squat else 0.81)
        tall = y + high - strip
        self.box(x, strip, wide, tall, style.accent, radius)
        self.box(x, strip, wide, tall / 2, style.accent)
        left = subject.strain_type if subject.strains and subject.strain_type else subject.noun
        small = {"size": tall * 0.42, "colour": "#ffffff", "weight": 1.7}
        y0 = strip + tall * 0.7
        if subject.size:
            self.add(
                written(left, x + wide * 0.08, y0, width=wide * 0.5, anchor=0, **small),  # type: ignore[arg-type]
                written(subject.size, x + wide * 0.92, y0, width=wide * 0.3, anchor=1, **small),  # type: ignore[arg-type]
            )
        else:
            self.add(written(left, middle, y0, width=inner, **small))  # type: ignore[arg-type]

    def _small_print(self, x: float, y: float, wide: float, high: float, radius: float) -> None:
        rng = self.rng
        self.box(x, y, wide, high, "#fbfbf8", radius)
        self.box(x + wide * 0.08, y + high * 0.07, wide * 0.5, high * 0.06, self.style.brand)
        lines = [
            f"M{x + wide * 0.08:.5g} {y + high * (0.2 + i * 0.055):.5g}h{wide * rng.uniform(0.55, 0.84):.4g}"
            for i in range(8)
        ]
        bars, at = [], x + wide * 0.08
        while at < x + wide * 0.6:
            thick = wide * rng.choice((0.01, 0.016, 0.026))
            bars.append(f"M{at:.5g} {y + high * 0.7:.5g}h{thick:.3g}v{high * 0.2:.4g}h{-thick:.3g}z")
            at += thick + wide * rng.choice((0.01, 0.018))
        cx, cy, side = x + wide * 0.78, y + high * 0.8, min(wide, high) * 0.13
        self.add(
            f'<path d="{"".join(lines)}" stroke="#8d9294" stroke-width="{max(0.8, high * 0.016):.3g}"/>',
            f'<path d="{"".join(bars)}" fill="#222"/>',
            f'<path d="M{cx:.5g} {cy - side:.5g}l{side:.4g} {side * 1.8:.4g}h{-2 * side:.4g}z" fill="#ffd84a" stroke="#222" '
            f'stroke-width="{max(0.8, side * 0.12):.3g}" stroke-linejoin="round"/>',
        )
        self.leaf(cx, cy + side * 0.45, side * 0.7, "#222222")
