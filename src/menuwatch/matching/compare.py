"""Compares two signatures of a block: evidence in bits for and against one product, and vetoes. Pure.

A Fellegi–Sunter score: each feature takes one of a few levels, and a level weighs log2 of how much more often it occurs between two
listings of one product than between two of different ones (`weights`). Agreement on a rare word weighs more than on a common one.
Vetoes are facts that no score outweighs.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from menuwatch.matching import lexicon
from menuwatch.matching.model import Reason, ReasonCode, Signature
from menuwatch.matching.weights import WEIGHTS, Weights
from menuwatch.matching.words import Alignment, Kind, align

_LINE_NAMES = 5
_LINE_SHARE = 0.06
"""A word that a brand puts into at least this many names, and into this share of them, is the name of a line."""
_FEWEST_NAMES = 30
"""Names of a block at least, for the rarity of its words: in a block of two names each word would be common."""
_MIDDLE = 0.44
"""Bits by which the middle of a step lies above its beginning."""
_LINE_FORMS = 3
"""Names of a line at least that tell its form, for those that do not."""
_RAREST = 4.0
"""Bits that the rarity of the shared words adds or takes at most."""


def name_level(names: int) -> float:
    """log2 of the number of names, in quarters: one name more seldom changes it."""
    return round(math.log2(max(names, _FEWEST_NAMES) + 1) * 4) / 4


def word_level(names: int) -> float:
    """log2 of the number of names that have a word, as the middle of its whole steps."""
    return (names + 1).bit_length() - 1 + (_MIDDLE if names else 0.0)


class Block(NamedTuple):
    """What the names of a block say together."""

    names: int
    """Distinct names."""
    frequency: Mapping[str, int]
    """In how many of them a word occurs."""
    lines: frozenset[tuple[tuple[str, ...], str]]
    """Words that name a line of a brand, with the brand."""
    forms: Mapping[UUID, frozenset[str]] = MappingProxyType({})
    """Forms of signatures whose name does not tell them, but whose line's other names do; by key."""

    def rarity(self, word: str) -> float:
        """How much rarer than common it is, in bits."""
        return name_level(self.names) - word_level(self.frequency.get(word, 0))

    def forms_of(self, one: Signature) -> frozenset[str]:
        """What a signature is made into, as its name, its menu and its line say."""
        found = self.forms.get(one.key)
        return frozenset(one.form) if found is None else found


class Comparison(NamedTuple):
    """`bits` above 0 speaks for one product; `veto` decides alone. `levels` are the features' levels and `rarity` the bits
    for the rarity of the shared words, for training."""

    bits: float
    veto: ReasonCode | None
    reasons: tuple[Reason, ...]
    levels: Mapping[str, str]
    rarity: float = 0.0

    @property
    def confidence(self) -> float:
        """Probability that both are one product, from 0 to 1."""
        if self.veto is not None:
            return 0.0
        return 1 / (1 + 2 ** -max(-60.0, min(60.0, self.bits)))


def block_of(signatures: Sequence[Signature]) -> Block:
    """Counts words over the distinct names of a block, in any order of them."""
    names: dict[tuple[str, ...], set[frozenset[str]]] = {}
    for one in signatures:
        names.setdefault(line_key(one), set()).add(frozenset(one.words))
    frequency: Counter[str] = Counter()
    lines: set[tuple[tuple[str, ...], str]] = set()
    total = 0
    for brand, sets in names.items():
        total += len(sets)
        having = Counter(chain.from_iterable(sets))
        frequency.update(having)
        enough = max(_LINE_NAMES, _LINE_SHARE * len(sets))
        lines |= {(brand, word) for word, count in having.items() if count >= enough and _may_be_line(brand[0], word)}
    return Block(max(total, 1), frequency, frozenset(lines), _forms_of_lines(signatures, lines))


def _forms_of_lines(
    signatures: Sequence[Signature], lines: Set[tuple[tuple[str, ...], str]]
) -> Mapping[UUID, frozenset[str]]:
    """A line whose names tell one device has that device where only a menu tells another one; a line of pre-rolls that most names
    call infused is infused."""
    if not lines:
        return {}
    devices: dict[tuple[tuple[str, ...], str], dict[str, set[frozenset[str]]]] = {}
    rolls: dict[tuple[tuple[str, ...], str], tuple[set[frozenset[str]], set[frozenset[str]]]] = {}
    able: list[tuple[Signature, list[tuple[tuple[str, ...], str]]]] = []
    for one in signatures:
        roll = one.kind == "flower" and "preroll" in one.form
        if not roll and one.kind != "vaporizer":
            continue
        key = line_key(one)
        of = [(key, word) for word in one.words if (key, word) in lines]
        if not of:
            continue
        name = frozenset(one.words)
        for line in of:
            if roll:
                rolls.setdefault(line, (set(), set()))["infused" in one.form].add(name)
            elif not one.device_by_menu:
                for device in lexicon.DEVICES.intersection(one.form):
                    devices.setdefault(line, {}).setdefault(device, set()).add(name)
        if "infused" not in one.form if roll else one.device_by_menu or lexicon.DEVICES.isdisjoint(one.form):
            able.append((one, of))
    found: dict[UUID, frozenset[str]] = {}
    for one, of in able:
        if one.kind == "vaporizer":
            said = [devices[line] for line in of if line in devices]
            only = {device for by in said for device, names in by.items() if len(by) == 1 and len(names) >= _LINE_FORMS}
            if len(only) == 1:
                found[one.key] = frozenset(one.form) - lexicon.DEVICES | only
        elif any(len(rolls[line][1]) >= max(_LINE_FORMS, len(rolls[line][0])) for line in of):
            found[one.key] = frozenset(one.form) | {"infused"}
    return found


def line_key(one: Signature) -> tuple[str, ...]:
    """What lines belong to: the brand, apart for edibles and accessories, whose lines are other products."""
    return (one.kind if one.kind in ("edible", "accessory") else "", *one.brand[:1])


def _may_be_line(kind: str, word: str) -> bool:
    if kind == "accessory" or (kind == "edible" and word in lexicon.EFFECTS):
        return False
    return len(word) > 1 and not word.isdigit() and word not in lexicon.OF_NAMES


def compare(a: Signature, b: Signature, block: Block, weights: Weights = WEIGHTS) -> Comparison:
    """Compares two signatures of one block."""
    veto, reasons = _veto(a, b, block)
    if veto is not None:
        return Comparison(-99.0, veto, (*reasons, Reason(code=veto)), {})
    words_a, words_b = a.words + a.aside, b.words + b.aside
    found = align(words_a, words_b)
    if found.left or found.right:
        # A name in brackets may be the other one's whole name: "Gush Mintz (GSH MNTS)".
        for alias_a, alias_b in ((a.aside, b.words), (a.words, b.aside)):
            alias = align(alias_a, alias_b)
            if alias.pairs and not alias.left and not alias.right:
                words_a, words_b, found = alias_a, alias_b, alias
                break
    level, bits, shared = _word_level(a, b, found, words_a, words_b, block)
    levels = {
        "words": level,
        "numbers": _numbers(found, words_a, words_b),
        "brand": _brand(a, b),
        "device": _agreement(block.forms_of(a), block.forms_of(b), lexicon.DEVICES),
        "extract": _agreement(block.forms_of(a), block.forms_of(b), lexicon.EXTRACTS),
        "strain": _level(a.strain, b.strain),
        "ratio": "agree" if a.ratio and b.ratio else _level(a.ratio, b.ratio),
    }
    if levels["numbers"] == "differ":
        return Comparison(-99.0, ReasonCode.OTHER_NUMBER, (Reason(code=ReasonCode.OTHER_NUMBER),), levels)
    if a.kind != "accessory" and _is_other_cross(words_a, words_b, level):
        return Comparison(-99.0, ReasonCode.OTHER_WORDS, (Reason(code=ReasonCode.OTHER_WORDS),), levels)
    evidence = {feature: weights[feature][value] for feature, value in levels.items()}
    total = weights["prior"]["pair"] + sum(evidence.values()) + bits
    return Comparison(total, None, _reasons(levels, evidence, bits, shared, a, b), levels, bits)


def _veto(a: Signature, b: Signature, block: Block) -> tuple[ReasonCode | None, tuple[Reason, ...]]:
    if a.house != b.house:
        return ReasonCode.NO_BRAND, ()
    if a.brand != b.brand and not _is_prefix(a.brand, b.brand):
        return ReasonCode.OTHER_BRAND, (
            Reason(code=ReasonCode.OTHER_BRAND, detail=f"{' '.join(a.brand)} / {' '.join(b.brand)}"),
        )
    if a.kind != b.kind and "other" not in (a.kind, b.kind):
        return ReasonCode.OTHER_FORM, ()
    form_a, form_b = block.forms_of(a), block.forms_of(b)
    for group in (lexicon.DEVICES, lexicon.EATEN, lexicon.PRESSES):
        if form_a & group and form_b & group and not form_a & form_b & group:
            return ReasonCode.OTHER_FORM, ()
    if a.kind == "flower" and form_a & _CUTS != form_b & _CUTS:
        return ReasonCode.OTHER_FORM, ()
    extract_a, extract_b = form_a & lexicon.EXTRACTS, form_b & lexicon.EXTRACTS
    if a.kind in ("vaporizer", "concentrate") and extract_a and extract_b and not extract_a & extract_b:
        return ReasonCode.OTHER_FORM, ()
    texture_a, texture_b = form_a & lexicon.TEXTURES, form_b & lexicon.TEXTURES
    if a.kind == "concentrate" and texture_a and texture_b and not texture_a & texture_b:
        return ReasonCode.OTHER_FORM, ()
    if ("live" in form_a and "cured" in form_b) or ("live" in form_b and "cured" in form_a):
        return ReasonCode.OTHER_FORM, ()
    if a.ratio is not None and b.ratio is not None and not _same_ratio(a.ratio, b.ratio):
        return ReasonCode.OTHER_RATIO, ()
    if a.kind not in ("edible", "topical") and (a.ratio is None) != (b.ratio is None):
        return ReasonCode.OTHER_RATIO, ()
    if bool(a.actives) != bool(b.actives) and "thc" not in (*a.actives, *b.actives):
        return ReasonCode.OTHER_RATIO, ()
    if a.actives and b.actives and ("thc" in a.actives) != ("thc" in b.actives):
        return ReasonCode.OTHER_RATIO, ()
    if a.actives and b.actives and not (set(a.actives) <= set(b.actives) or set(b.actives) <= set(a.actives)):
        return ReasonCode.OTHER_RATIO, ()
    if a.kind == "edible" and a.strain and b.strain and a.strain != b.strain:
        return ReasonCode.OTHER_STRAIN_TYPE, ()
    return None, ()


_CUTS = lexicon.CUTS | {"infused", "blunt"}


def _same_ratio(a: str, b: str) -> bool:
    """Equal amounts of equal cannabinoids; where a menu does not tell which, equal amounts."""
    if a == b:
        return True
    if a[0].isalpha() and b[0].isalpha():
        return False
    return sorted(re.findall(r"\d+(?![a-z])", a)) == sorted(re.findall(r"\d+(?![a-z])", b))


def _is_prefix(a: Sequence[str], b: Sequence[str]) -> bool:
    return bool(a) and bool(b) and (a[: len(b)] == b or b[: len(a)] == a or "".join(a) == "".join(b))


def _is_other_cross(words_a: Sequence[str], words_b: Sequence[str], level: str) -> bool:
    """A cross of two strains is neither of them, and not their cross with a third one."""
    if "x" not in words_a and "x" not in words_b:
        return False
    return "x" not in words_a or "x" not in words_b or level in ("part", "little")


def _numbers(found: Alignment, words_a: Sequence[str], words_b: Sequence[str]) -> str:
    left = [words_a[i] for i in found.left if words_a[i].isdigit()]
    right = [words_b[j] for j in found.right if words_b[j].isdigit()]
    if left and right:
        return "differ"
    if left or right:
        return "one"
    return "agree" if any(words_a[i].isdigit() for i, _ in found.pairs) else "none"


def _word_level(
    a: Signature, b: Signature, found: Alignment, words_a: Sequence[str], words_b: Sequence[str], block: Block
) -> tuple[str, float, tuple[str, ...]]:
    """The level of the words, bits for the rarity of what they share, and the shared words."""

    def is_line(one: Signature, word: str) -> bool:
        if one.kind == "vaporizer" and len(one.words) > 1 and word == one.words[-1] and word in lexicon.COLORS:
            return True
        return (line_key(one), word) in block.lines

    brand_extra = set(a.brand) ^ set(b.brand)
    left = [i for i in found.left if words_a[i] != "x" and words_a[i] not in brand_extra and not words_a[i].isdigit()]
    right = [j for j in found.right if words_b[j] != "x" and words_b[j] not in brand_extra and not words_b[j].isdigit()]
    shared = tuple(words_a[i] for i, _ in found.pairs if words_a[i] != "x")
    distinctive = [word for word in shared if not is_line(a, word) and not (word.isdigit() and len(shared) > 1)]
    own_a = [i for i in left if not is_line(a, words_a[i]) and len(words_a[i]) > 1]
    own_b = [j for j in right if not is_line(b, words_b[j]) and len(words_b[j]) > 1]
    rarity = sum(block.rarity(word) for word in distinctive)
    bits = max(-_RAREST, min(_RAREST, (rarity - 5.0) * 0.5))
    if not distinctive:
        if shared and not left and not right:
            return ("equal" if found.kind is Kind.EXACT else "variant"), min(bits, 0.0), shared
        return "none", 0.0, shared
    if not own_a and not own_b:
        if left and right:
            return "other_lines", bits, shared
        if left or right:
            return "line", bits, shared
        if found.kind is Kind.EXACT:
            return "equal", bits, shared
        return ("variant" if found.kind is not Kind.ABBREVIATION else "abbreviation"), bits, shared
    share = len(distinctive) / (len(distinctive) + max(len(own_a), len(own_b)))
    if a.kind == "edible" and not {*(words_a[i] for i in own_a), *(words_b[j] for j in own_b)}.isdisjoint(
        lexicon.EFFECTS
    ):
        return "little", bits, shared
    names = lexicon.COLORS if a.kind == "accessory" else lexicon.OF_NAMES
    names_a = [i for i in own_a if words_a[i] in names]
    names_b = [j for j in own_b if words_b[j] in names]
    if names_a and names_b:
        return "little", bits, shared
    if not own_a or not own_b:
        aside = all(i >= len(a.words) for i in own_a) and all(j >= len(b.words) for j in own_b)
        if aside:
            return "aside", bits, shared
        return ("extra" if share > 0.5 else "most_extra"), bits, shared
    return ("part" if share > 0.5 else "little"), bits, shared


def _agreement(a: frozenset[str], b: frozenset[str], group: frozenset[str]) -> str:
    left, right = a & group, b & group
    if not left and not right:
        return "none"
    return "agree" if left & right else "one"


def _level(a: str | None, b: str | None) -> str:
    if a is None and b is None:
        return "none"
    if a is None or b is None:
        return "one"
    return "agree" if a == b else "differ"


def _brand(a: Signature, b: Signature) -> str:
    if a.brand == b.brand:
        return "equal" if a.brand else "house"
    return "prefix"


_WORD_CODES = {
    "equal": ReasonCode.SAME_WORDS,
    "variant": ReasonCode.SPELLING,
    "abbreviation": ReasonCode.ABBREVIATION,
    "line": ReasonCode.SHARED_WORDS,
    "other_lines": ReasonCode.SHARED_WORDS,
    "aside": ReasonCode.SHARED_WORDS,
    "extra": ReasonCode.SHARED_WORDS,
    "most_extra": ReasonCode.OTHER_WORDS,
    "part": ReasonCode.OTHER_WORDS,
    "little": ReasonCode.OTHER_WORDS,
    "none": ReasonCode.OTHER_WORDS,
}


def _reasons(
    levels: Mapping[str, str],
    weights: Mapping[str, float],
    bits: float,
    shared: tuple[str, ...],
    a: Signature,
    b: Signature,
) -> tuple[Reason, ...]:
    word_code = _WORD_CODES[levels["words"]]
    detail = (
        " ".join(shared) if word_code is not ReasonCode.OTHER_WORDS else f"{' '.join(a.words)} / {' '.join(b.words)}"
    )
    found = [Reason(code=word_code, detail=detail, weight=round(weights["words"] + bits, 1))]
    if levels["numbers"] == "one":
        found.append(Reason(code=ReasonCode.OTHER_NUMBER, weight=round(weights["numbers"], 1)))
    if levels["brand"] == "equal":
        found.append(Reason(code=ReasonCode.SAME_BRAND, detail=" ".join(a.brand), weight=round(weights["brand"], 1)))
    elif levels["brand"] == "prefix":
        detail = f"{' '.join(a.brand)} / {' '.join(b.brand)}"
        found.append(Reason(code=ReasonCode.BRAND_PREFIX, detail=detail, weight=round(weights["brand"], 1)))
    form = weights["device"] + weights["extract"]
    if "agree" in (levels["device"], levels["extract"]):
        detail = ", ".join(sorted(set(a.form) & set(b.form)))
        found.append(Reason(code=ReasonCode.SAME_FORM, detail=detail, weight=round(form, 1)))
    if levels["strain"] in ("agree", "differ"):
        code = ReasonCode.SAME_STRAIN_TYPE if levels["strain"] == "agree" else ReasonCode.OTHER_STRAIN_TYPE
        detail = f"{a.strain}" if levels["strain"] == "agree" else f"{a.strain} / {b.strain}"
        found.append(Reason(code=code, detail=detail, weight=round(weights["strain"], 1)))
    if levels["ratio"] == "one":
        found.append(
            Reason(code=ReasonCode.OTHER_RATIO, detail=f"{a.ratio or b.ratio}", weight=round(weights["ratio"], 1))
        )
    return tuple(found)
