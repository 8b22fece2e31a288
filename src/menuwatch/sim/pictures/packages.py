"""How each kind of product is packed: jars, pouches, tubes, cartons, bottles, tins. Everything stands on a floor at y = 330."""

from __future__ import annotations

from menuwatch.sim.pictures.drawing import Drawing, dark, light
from menuwatch.sim.pictures.lettering import written

_FLOOR = 330.0
_GLASS_EDGE = ' stroke="#b9c3c4" stroke-width="1.5"'


def flower_jar(d: Drawing) -> None:
    """A glass jar of buds with a lid, and a bud before it."""
    x, wide, top = 116.0, 168.0, 118.0
    d.shadow(200, _FLOOR, 118)
    glass = d.gradient((0, "#d3dadb"), (0.12, "#f3f7f7"), (0.5, "#fafcfc"), (0.9, "#e6ecec"), (1, "#c6cecf"))
    d.box(x, top, wide, _FLOOR - top, glass, 24, _GLASS_EDGE)
    for dx, dy, size in ((30, 164, 62), (78, 158, 66), (128, 164, 66), (46, 190, 60), (116, 194, 64), (84, 300, 62), (34, 304, 54),
                         (136, 304, 56)):  # fmt: skip
        d.bud(x + dx, dy, size)
    d.box(x, 196, wide, 90, "none")
    d.label(x + 6, 190, wide - 12, 116)
    d.add(
        f'<rect x="{x + 12}" y="{top + 12}" width="9" height="{_FLOOR - top - 40}" rx="4.5" fill="#fff" opacity=".45"/>'
    )
    _lid(d, x - 5, 76, wide + 10, 48)
    d.shadow(304, _FLOOR + 2, 40, 8)
    d.bud(302, 302, 66)


def _lid(d: Drawing, x: float, y: float, wide: float, high: float) -> None:
    colour = ("#24272a", "#f4f4f0", "#b98a55")[d.style.layout]
    d.box(x, y, wide, high, d.round_side(colour), 7)
    ridges = "".join(f"M{x + wide * i / 26:.5g} {y + 8:.5g}v{high - 16:.5g}" for i in range(1, 26))
    d.add(f'<path d="{ridges}" stroke="{dark(colour)}" stroke-width="1.2" opacity=".45"/>')


def _pouch_body(d: Drawing) -> None:
    colour = ("#f5f5f2", d.style.brand, "#26282b")[d.style.layout]
    d.shadow(200, _FLOOR + 2, 122)
    fill = d.gradient(
        (0, dark(colour, 0.25)), (0.14, colour), (0.3, light(colour, 0.4)), (0.5, colour), (1, dark(colour, 0.3))
    )
    d.add(
        f'<path d="M102 62H298L306 {_FLOOR - 8}Q200 {_FLOOR + 14} 94 {_FLOOR - 8}Z" fill="{fill}"/>',
        f'<path d="M102 62H298L299 88H101Z" fill="{dark(colour, 0.12)}" opacity=".55"/>',
        '<path d="M101 94H299M101 99H299" stroke="#fff" stroke-width="1.4" opacity=".55"/>',
        '<circle cx="200" cy="75" r="7" fill="#fff" opacity=".9"/>',
        f'<path d="M97 {_FLOOR - 40}Q200 {_FLOOR - 14} 303 {_FLOOR - 40}" fill="none" stroke="#000" '
        'stroke-width="1.5" opacity=".18"/>',
    )


def flower_pouch(d: Drawing) -> None:
    """A stand-up pouch with a window onto ground flower."""
    _pouch_body(d)
    d.label(124, 112, 152, 142)
    d.box(136, 264, 128, 34, d.style.greens[0], 17)
    specks = "".join(
        f"M{d.rng.uniform(146, 254):.5g} {d.rng.uniform(268, 294):.5g}h{d.rng.uniform(1, 3):.2g}" for _ in range(90)
    )
    d.add(f'<path d="{specks}" stroke="{d.style.greens[2]}" stroke-width="2.2" stroke-linecap="round"/>')
    d.box(136, 264, 128, 34, "none", 17, ' stroke="#fff" stroke-width="2" opacity=".7"')


def small_buds_jar(d: Drawing) -> None:
    """A wide, low jar of small buds."""
    d.shadow(200, _FLOOR, 132)
    glass = d.gradient((0, "#d3dadb"), (0.12, "#f3f7f7"), (0.5, "#fafcfc"), (0.9, "#e6ecec"), (1, "#c6cecf"))
    d.box(88, 150, 224, _FLOOR - 150, glass, 30, _GLASS_EDGE)
    for row, y in ((0, 182), (1, 304)):
        for i in range(7):
            d.bud(110 + i * 30 + row * 4, y + d.rng.uniform(-5, 5), 42)
    d.label(96, 198, 208, 88)
    _lid(d, 82, 112, 236, 44)
    for x, size in ((318, 40), (348, 32)):
        d.shadow(x, _FLOOR + 3, 20, 5)
        d.bud(x, _FLOOR - size * 0.4, size)


def preroll(d: Drawing, x: float, y: float, turn: float, *, size: float = 1.0, infused: bool = False) -> None:
    """One pre-rolled cone, its filter at the point given."""
    paper = d.gradient((0, "#dcd8cc"), (0.3, "#fdfcf6"), (0.7, "#f2efe4"), (1, "#cfcabb"))
    dust = (
        "".join(f"M{d.rng.uniform(-11, 11):.3g} {d.rng.uniform(-170, -70):.4g}h.1" for _ in range(60))
        if infused
        else ""
    )
    d.add(
        f'<g transform="translate({x:.5g} {y:.5g})rotate({turn:.4g})scale({size:g})">',
        f'<path d="M-8 0L-13 -176Q-6 -186 -2 -206Q0 -210 2 -206Q6 -186 13 -176L8 0Z" fill="{paper}"/>',
        '<path d="M-12 -150L12 -162M-11.5 -120L11.5 -132M-11 -90L11 -102" stroke="#b9b39f" stroke-width=".8" opacity=".6"/>',
        f'<path d="{dust}" stroke="{light(d.style.flavour, 0.4)}" stroke-width="3" stroke-linecap="round"/>'
        if dust
        else "",
        f'<path d="M-8 0L-9.2 -44H9.2L8 0Z" fill="{d.round_side("#d9b27a")}"/>',
        f'<path d="M-9.2 -44H9.2L9.4 -50H-9.4Z" fill="{d.style.brand}"/></g>',
    )


def preroll_tube(d: Drawing) -> None:
    """A tube with a label and a cap, and the pre-roll beside it."""
    infused = "Infused" in d.subject.noun
    d.shadow(168, _FLOOR + 2, 66)
    body = ("#ececea", d.style.brand, "#232628")[d.style.layout]
    d.box(116, 72, 96, _FLOOR - 72, d.round_side(body), 10)
    d.box(112, 46, 104, 46, d.round_side("#26292b" if d.style.layout != 2 else d.style.brand), 8)
    d.label(122, 112, 84, 188, radius=2)
    d.add('<rect x="130" y="98" width="7" height="220" rx="3.5" fill="#fff" opacity=".25"/>')
    d.shadow(280, _FLOOR + 2, 40, 8)
    preroll(d, 268, _FLOOR - 2, 9, size=1.18, infused=infused)


def preroll_box(d: Drawing) -> None:
    """A carton of two, which lie before it."""
    _carton(d, 112, 78, 156, 212)
    d.label(122, 90, 136, 186, radius=2)
    for x, turn in ((116, 82), (104, 78)):
        d.shadow(x + 120, _FLOOR + 6, 130, 7)
        preroll(d, x, _FLOOR + 10 - (turn - 78) * 4, turn, size=0.98)


def _carton(d: Drawing, x: float, y: float, wide: float, high: float) -> None:
    colour = ("#f7f7f4", d.style.brand, "#232528")[d.style.layout]
    side = wide * 0.2
    d.shadow(x + wide * 0.58, y + high, wide * 0.74)
    d.box(x, y, wide, high, d.gradient((0, dark(colour, 0.06)), (0.4, colour), (1, light(colour, 0.12))), 1)
    d.add(
        f'<path d="M{x + wide:g} {y:g}l{side:g} {-side * 0.5:g}v{high:g}l{-side:g} {side * 0.5:g}z" fill="{dark(colour, 0.28)}"/>',
        f'<path d="M{x:g} {y:g}l{side:g} {-side * 0.5:g}h{wide:g}l{-side:g} {side * 0.5:g}z" fill="{light(colour, 0.3)}"/>',
    )


def cartridge(d: Drawing) -> None:
    """A cartridge of oil beside its carton."""
    _carton(d, 70, 96, 122, 234)
    d.label(78, 108, 106, 208, radius=2)
    d.shadow(282, _FLOOR + 2, 56)
    oil = d.round_side(
        "#d98f1e" if "Live" not in d.subject.noun and "Cured" not in d.subject.noun else "#e6b84a", depth=0.3
    )
    mouth = ("#2a2c2f", "#f2f2ee", "#b98a55")[d.style.layout]
    steel = d.round_side("#b9bfc4")
    d.add(f'<path d="M262 62Q282 50 302 62L306 136H258Z" fill="{d.round_side(mouth)}"/>')
    d.box(250, 136, 64, 128, d.gradient((0, "#cfd6d8"), (0.5, "#fbfdfd"), (1, "#c3cccd")), 6, _GLASS_EDGE)
    d.box(256, 152, 52, 108, oil, 4)
    d.box(276, 140, 12, 120, d.round_side("#d5dadd"), 2)
    d.add('<rect x="260" y="144" width="6" height="112" rx="3" fill="#fff" opacity=".6"/>')
    d.box(248, 262, 68, 30, steel, 4)
    d.box(264, 292, 36, 38, steel, 2)
    d.add("".join(f'<path d="M264 {y}h36" stroke="#7c8488" stroke-width="1.6"/>' for y in (300, 307, 314, 321)))
    d.add(written(d.subject.size, 282, 282, size=10, width=50, colour="#4a5054"))


def disposable(d: Drawing) -> None:
    """A vaporizer in one piece before its carton."""
    _carton(d, 78, 84, 140, 246)
    d.label(88, 96, 120, 220, radius=2)
    body = d.style.brand if d.style.layout != 1 else "#24272a"
    d.shadow(296, _FLOOR + 2, 50)

    def pen() -> None:
        d.add(f'<path d="M284 62Q296 52 308 62L314 110H278Z" fill="{d.round_side("#202225")}"/>')
        d.box(266, 106, 60, 224, d.round_side(body), 16)
        d.box(
            284,
            128,
            24,
            62,
            d.round_side("#e0a034", depth=0.25),
            10,
            ' stroke="#fff" stroke-opacity=".6" stroke-width="1.5"',
        )
        d.leaf(296, 240, 22, light(body, 0.7))
        d.add(written(d.subject.size, 296, 284, size=9, width=40, colour=light(body, 0.75)))
        d.add('<circle cx="296" cy="312" r="3" fill="#7be08a"/>')

    d.group("rotate(5 296 330)", pen)


def concentrate_jar(d: Drawing) -> None:
    """A low glass jar that stands open, with its lid behind it."""
    d.shadow(168, 150, 76, 10)
    d.box(96, 84, 148, 60, d.round_side(("#222527", d.style.brand, "#f1f1ed")[d.style.layout]), 8)
    d.add(
        f'<ellipse cx="170" cy="86" rx="74" ry="17" fill="{("#34383b", light(d.style.brand, 0.2), "#ffffff")[d.style.layout]}"/>'
    )
    d.leaf(170, 94, 15, d.style.accent)
    d.shadow(210, _FLOOR, 136)
    glass = d.gradient((0, "#c9d2d3"), (0.15, "#f4f8f8"), (0.6, "#ffffff"), (1, "#bcc6c8"))
    d.add(
        f'<path d="M92 190V{_FLOOR - 34}Q92 {_FLOOR} 210 {_FLOOR}Q328 {_FLOOR} 328 {_FLOOR - 34}V190Z" fill="{glass}"/>'
    )
    d.add(f'<ellipse cx="210" cy="190" rx="118" ry="34" fill="#f7fafa"{_GLASS_EDGE}/>')
    dab(d, 210, 192, 96, 25)
    d.label(124, 226, 172, 88)


def dab(d: Drawing, x: float, y: float, wide: float, high: float) -> None:
    """A portion of concentrate seen from a low angle: crystals, cream or a clear drop."""
    noun, rng = d.subject.noun, d.rng
    colour = {"Live Sugar": "#e3a62e", "Badder": "#efcf7d", "Rosin": "#d8ac52"}[noun]
    d.add(
        f'<ellipse cx="{x}" cy="{y}" rx="{wide}" ry="{high}" fill="{d.glow(light(colour, 0.45), dark(colour, 0.18))}"/>'
    )
    if noun == "Live Sugar":
        fills = (light(colour, 0.7), light(colour, 0.35), dark(colour, 0.12))
        for _ in range(110):
            dx, dy = rng.uniform(-0.86, 0.86), rng.uniform(-0.8, 0.7)
            if dx * dx + dy * dy < 0.8:
                side = rng.uniform(3, 7) * wide / 96
                d.add(
                    f'<rect x="{x + dx * wide:.5g}" y="{y + dy * high:.5g}" width="{side:.3g}" height="{side * 0.8:.3g}" '
                    f'fill="{rng.choice(fills)}" opacity=".85"/>'
                )
        return
    swirls = 5 if noun == "Badder" else 2
    for i in range(swirls):
        half, dy = wide * (0.78 - i * 0.13), high * (0.3 - i * 0.16)
        d.add(
            f'<path d="M{x - half:.5g} {y + dy:.5g}q{half + rng.uniform(-20, 20):.5g} {-high * 0.9:.5g} {2 * half:.5g} 0" '
            f'fill="none" stroke="{light(colour, 0.6)}" stroke-width="{high * (0.16 if swirls > 2 else 0.09):.3g}" '
            f'stroke-linecap="round" opacity=".8"/>'
        )


def gummies_pouch(d: Drawing) -> None:
    """A pouch, and three gummies before it."""
    _pouch_body(d)
    d.label(120, 112, 160, 168)
    for x, turn in ((226, -14), (276, 8), (322, -6)):
        gummy(d, x, _FLOOR - 8, 40, turn)


def gummy(d: Drawing, x: float, y: float, side: float, turn: float) -> None:
    """A sugared cube of fruit jelly."""
    colour, rng = d.style.flavour, d.rng
    sugar = "".join(
        f"M{rng.uniform(-0.45, 0.45) * side:.3g} {rng.uniform(-0.45, 0.45) * side:.3g}h.1" for _ in range(34)
    )
    d.shadow(x, y + side * 0.5, side * 0.8, side * 0.14)
    d.add(
        f'<g transform="translate({x:.5g} {y:.5g})rotate({turn:.4g})">'
        f'<rect x="{-side / 2}" y="{-side / 2}" width="{side}" height="{side}" rx="{side * 0.24:g}" '
        f'fill="{d.glow(light(colour, 0.5), dark(colour, 0.12))}"/>'
        f'<path d="{sugar}" stroke="#fff" stroke-width="{side * 0.05:.3g}" stroke-linecap="round" opacity=".8"/></g>'
    )


def chocolate_bar(d: Drawing) -> None:
    """A bar half out of its wrapper."""
    cocoa = "#5a3420" if d.subject.salt % 3 else "#8a5836"
    d.shadow(200, _FLOOR, 110)
    d.box(122, 62, 156, 120, d.gradient((0, dark(cocoa)), (0.3, light(cocoa, 0.15)), (1, dark(cocoa, 0.2))), 6)
    for row in range(3):
        for column in range(3):
            x, y = 128 + column * 49, 68 + row * 38
            fill = d.gradient((0, light(cocoa, 0.2)), (1, cocoa))
            d.box(x, y, 45, 34, fill, 4, f' stroke="{dark(cocoa, 0.3)}" stroke-width="1.5"')
    foil = d.gradient((0, "#b9b9b4"), (0.3, "#f4f4f0"), (0.6, "#d0d0ca"), (1, "#a9a9a4"))
    jags = "".join(f"L{116 + (i + 1) * 14} {140 if i % 2 else 130}" for i in range(12))
    d.add(f'<path d="M116 150V134{jags}V150Z" fill="{foil}"/>')
    paper = ("#f7f7f3", d.style.brand, "#26282b")[d.style.layout]
    d.box(
        114,
        144,
        172,
        _FLOOR - 144,
        d.gradient((0, dark(paper, 0.15)), (0.2, paper), (0.8, paper), (1, dark(paper, 0.2))),
        2,
    )
    d.label(122, 152, 156, 168, radius=2)


def can(d: Drawing) -> None:
    """A can of seltzer."""
    d.shadow(200, _FLOOR, 88)
    colour = ("#f1f3f3", d.style.brand, "#25282a")[d.style.layout]
    steel = d.round_side("#c4cacd")
    d.add(f'<path d="M140 62H260L272 84H128Z" fill="{steel}"/>')
    d.add(f'<path d="M136 {_FLOOR - 14}H264L254 {_FLOOR}H146Z" fill="{steel}"/>')
    d.box(128, 82, 144, _FLOOR - 96, d.round_side(colour, depth=0.3), 8)
    d.add('<ellipse cx="200" cy="62" rx="60" ry="11" fill="#dfe3e5" stroke="#9aa2a6" stroke-width="1.5"/>')
    d.add('<ellipse cx="200" cy="61" rx="20" ry="4.5" fill="#aab1b5"/>')
    d.label(134, 112, 132, 176, radius=2)
    drops = [(d.rng.uniform(134, 266), d.rng.uniform(92, 308), d.rng.uniform(1.2, 3)) for _ in range(26)]
    d.add("".join(f'<circle cx="{x:.5g}" cy="{y:.5g}" r="{r:.2g}" fill="#fff" opacity=".55"/>' for x, y, r in drops))


def dropper_bottle(d: Drawing) -> None:
    """A bottle of brown glass with a dropper."""
    d.shadow(200, _FLOOR, 80)
    glass = d.round_side(("#7a4314", "#31506b", "#3a3f42")[d.style.layout], depth=0.3)
    d.add(
        f'<path d="M176 126H224V146Q264 156 264 190V{_FLOOR - 12}Q264 {_FLOOR} 252 {_FLOOR}H148Q136 {_FLOOR} 136 {_FLOOR - 12}V190'
        f'Q136 156 176 146Z" fill="{glass}"/>'
    )
    d.add(f'<path d="M182 42Q200 26 218 42L214 92H186Z" fill="{d.round_side("#2a2c2e")}"/>')
    d.box(170, 90, 60, 42, d.round_side("#d8d4c8" if d.style.layout == 2 else "#1f2123"), 4)
    d.label(139, 190, 122, 116, radius=1)
    d.add('<rect x="146" y="178" width="7" height="138" rx="3.5" fill="#fff" opacity=".3"/>')


def tin(d: Drawing) -> None:
    """A round tin of balm, its lid leaning on it."""
    d.shadow(200, _FLOOR, 140)
    steel = d.round_side("#c9ced1")
    d.add(
        f'<path d="M70 236V{_FLOOR - 28}Q70 {_FLOOR} 200 {_FLOOR}Q330 {_FLOOR} 330 {_FLOOR - 28}V236Z" fill="{steel}"/>'
    )
    d.add('<ellipse cx="200" cy="236" rx="130" ry="32" fill="#eef0f1" stroke="#9da5a9" stroke-width="2"/>')
    balm = light(d.style.flavour, 0.72)
    d.add(f'<ellipse cx="200" cy="238" rx="118" ry="26" fill="{d.glow("#fffdf6", balm)}"/>')
    d.add('<ellipse cx="200" cy="146" rx="112" ry="104" fill="#dfe3e5" stroke="#9da5a9" stroke-width="3"/>')
    d.add(
        f'<ellipse cx="200" cy="145" rx="103" ry="95" fill="{("#ffffff", d.style.brand, "#1e2022")[d.style.layout]}"/>'
    )
    d.label(126, 88, 148, 114, radius=12)
    d.add(f'<path d="M86 244Q200 222 314 244" fill="none" stroke="{dark(balm, 0.1)}" stroke-width="2" opacity=".5"/>')


def lotion_tube(d: Drawing) -> None:
    """A squeeze tube that stands on its cap."""
    d.shadow(200, _FLOOR, 76)
    colour = ("#f6f6f3", d.style.brand, "#26282a")[d.style.layout]
    d.box(156, 288, 88, 42, d.round_side("#2b2e30" if d.style.layout != 2 else "#efefec"), 5)
    d.add(f'<path d="M124 52H276L256 290H144Z" fill="{d.round_side(colour, depth=0.22)}"/>')
    d.box(122, 44, 156, 22, d.round_side(dark(colour, 0.08)), 2)
    d.label(146, 84, 108, 176, radius=3)


def pill_bottle(d: Drawing) -> None:
    """A bottle of capsules or troches, and some of them before it."""
    d.shadow(186, _FLOOR, 92)
    body = d.round_side(("#f3f3f0", "#c9782b", "#2c3033")[d.style.layout], depth=0.25)
    d.box(112, 118, 150, _FLOOR - 118, body, 16)
    _lid(d, 118, 66, 138, 58)
    d.label(114, 150, 146, 152, radius=1)
    for x, turn in ((284, -24), (316, 30), (346, -8)):
        pill(d, x, _FLOOR - 6, turn)


def pill(d: Drawing, x: float, y: float, turn: float, size: float = 1.0) -> None:
    """A capsule of two colours, or a troche."""
    d.shadow(x, y + 12 * size, 22 * size, 4 * size)
    colour = d.style.flavour
    if "Troche" in d.subject.noun:
        fill = d.glow(light(colour, 0.75), light(colour, 0.35))
        d.add(f'<ellipse cx="{x:.5g}" cy="{y:.5g}" rx="{17 * size:.3g}" ry="{11 * size:.3g}" fill="{fill}"/>')
        return
    half = d.gradient((0, light(colour, 0.3)), (1, dark(colour, 0.15)), down=True)
    d.add(
        f'<g transform="translate({x:.5g} {y:.5g})rotate({turn:.4g})scale({size:g})">',
        f'<rect x="-22" y="-9" width="44" height="18" rx="9" fill="{half}"/>',
        f'<path d="M0 -9H13Q22 -9 22 0Q22 9 13 9H0Z" fill="{d.gradient((0, "#ffffff"), (1, "#cfd2d2"), down=True)}"/></g>',
    )
