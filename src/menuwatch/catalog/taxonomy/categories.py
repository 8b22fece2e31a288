"""Canonical categories and subcategories for every platform's words.

The platform's subcategory decides where it is more specific than its category: Weedmaps files pre-rolls under Flower and
tinctures under Edibles, where Dutchie has separate categories.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple, get_args

from menuwatch.catalog.taxonomy.text import key

Category = Literal[
    "flower", "preroll", "vaporizer", "concentrate", "edible", "tincture", "oral", "topical", "cultivation", "accessory",
    "apparel", "other",
]  # fmt: skip
"""`oral` is swallowed or let melt and no food (capsules, tablets, troches); `cultivation` is seeds and clones; `other` is what a
platform itself calls so."""

Subcategory = Literal[
    "badder", "baked", "balm", "bath", "battery", "beverage", "blunt", "candy", "capsules", "cartridge", "chews",
    "chocolate", "cleaning", "clones", "cooking", "crumble", "cured_resin", "dabbing", "device", "diamonds", "disposable",
    "distillate", "frozen", "glass", "grinder", "ground", "gummies", "hash", "hats", "hoodies", "infused", "kief", "lighter",
    "live_resin", "lotion", "nug_run", "oil", "pack", "papers", "patches", "pod", "powder", "rosin", "rso", "sauce", "seeds",
    "shake", "shatter", "shirts", "single", "small_buds", "snacks", "storage", "sublingual", "sugar", "syringe", "syrup",
    "taffy", "trays", "troches", "wax",
]  # fmt: skip
"""The platforms' words below assign subcategories to categories; `infused`, `oil` and others belong to several."""

CATEGORIES: frozenset[str] = frozenset(get_args(Category))
SUBCATEGORIES: frozenset[str] = frozenset(get_args(Subcategory))

DOSED: frozenset[str] = frozenset({"edible", "tincture", "oral", "topical"})
"""Categories sold by content: a mass on the label is that of THC or CBD, not of the package."""

WEIGHED: frozenset[str] = frozenset({"flower", "preroll", "vaporizer", "concentrate"})
"""Categories sold by their own mass."""


class Kind(NamedTuple):
    """Category and, where the words say so, subcategory."""

    category: Category | None
    subcategory: Subcategory | None


_CATEGORIES: dict[str, Category] = {
    "flower": "flower",
    "cannabis flower": "flower",
    "bud": "flower",
    "premium flower": "flower",
    "pre roll": "preroll",
    "preroll": "preroll",
    "joint": "preroll",
    "vaporizer": "vaporizer",
    "vape": "vaporizer",
    "vape pen": "vaporizer",
    "cartridge": "vaporizer",
    "concentrate": "concentrate",
    "extract": "concentrate",
    "edible": "edible",
    "beverage": "edible",
    "drink": "edible",
    "tincture": "tincture",
    "oral": "oral",
    "capsule": "oral",
    "topical": "topical",
    "seed": "cultivation",
    "clone": "cultivation",
    "cultivation": "cultivation",
    "grow": "cultivation",
    "accessory": "accessory",
    "gear": "accessory",
    "merch": "apparel",
    "merchandise": "apparel",
    "apparel": "apparel",
    "other": "other",
}

_SUBCATEGORIES: dict[str, Kind] = {
    # flower
    "bud": Kind("flower", None),
    "shake": Kind("flower", "shake"),
    "shake trim": Kind("flower", "shake"),
    "trim": Kind("flower", "shake"),
    "small bud": Kind("flower", "small_buds"),
    "premium": Kind("flower", None),
    "whole flower": Kind("flower", None),
    "infused flower": Kind("flower", "infused"),
    "infused bud": Kind("flower", "infused"),
    "moon rock": Kind("flower", "infused"),
    "pre ground": Kind("flower", "ground"),
    "ground bud": Kind("flower", "ground"),
    "bulk": Kind("flower", None),
    "premium flower": Kind("flower", None),
    "ground flower": Kind("flower", "ground"),
    "small": Kind("flower", "small_buds"),
    "mini bud": Kind("flower", "small_buds"),
    "popcorn": Kind("flower", "small_buds"),
    # pre-rolls
    "pre roll": Kind("preroll", None),
    "single": Kind("preroll", "single"),
    "pre roll single": Kind("preroll", "single"),
    "pack": Kind("preroll", "pack"),
    "pre roll pack": Kind("preroll", "pack"),
    "infused pre roll": Kind("preroll", "infused"),
    "infused pre roll pack": Kind("preroll", "infused"),
    "blunt": Kind("preroll", "blunt"),
    # vaporizers
    "cartridge": Kind("vaporizer", "cartridge"),
    "cured resin cartridge": Kind("vaporizer", "cartridge"),
    "live resin cartridge": Kind("vaporizer", "cartridge"),
    "rosin cartridge": Kind("vaporizer", "cartridge"),
    "live rosin cartridge": Kind("vaporizer", "cartridge"),
    "510 thread": Kind("vaporizer", "cartridge"),
    "disposable": Kind("vaporizer", "disposable"),
    "all in one": Kind("vaporizer", "disposable"),
    "all in one cartridge": Kind("vaporizer", "disposable"),
    "pod": Kind("vaporizer", "pod"),
    # concentrates
    "distillate": Kind("concentrate", "distillate"),
    "rosin": Kind("concentrate", "rosin"),
    "live rosin": Kind("concentrate", "rosin"),
    "live resin": Kind("concentrate", "live_resin"),
    "cured resin": Kind("concentrate", "cured_resin"),
    "budder": Kind("concentrate", "badder"),
    "badder": Kind("concentrate", "badder"),
    "live badder": Kind("concentrate", "badder"),
    "cured badder": Kind("concentrate", "badder"),
    "batter": Kind("concentrate", "badder"),
    "sugar": Kind("concentrate", "sugar"),
    "live sugar": Kind("concentrate", "sugar"),
    "cured sugar": Kind("concentrate", "sugar"),
    "sauce": Kind("concentrate", "sauce"),
    "diamond": Kind("concentrate", "diamonds"),
    "crystalline": Kind("concentrate", "diamonds"),
    "crumble": Kind("concentrate", "crumble"),
    "shatter": Kind("concentrate", "shatter"),
    "wax": Kind("concentrate", "wax"),
    "taffy": Kind("concentrate", "taffy"),
    "nug run": Kind("concentrate", "nug_run"),
    "kief": Kind("concentrate", "kief"),
    "dry sift": Kind("concentrate", "kief"),
    "hash": Kind("concentrate", "hash"),
    "ice hash": Kind("concentrate", "hash"),
    "bubble hash": Kind("concentrate", "hash"),
    "syringe": Kind("concentrate", "syringe"),
    "applicator": Kind("concentrate", "syringe"),
    "rso": Kind("concentrate", "rso"),
    "concentrate oil": Kind("concentrate", "oil"),
    "oil": Kind("concentrate", "oil"),
    # edibles
    "gummy": Kind("edible", "gummies"),
    "chew": Kind("edible", "chews"),
    "fruit chew": Kind("edible", "chews"),
    "taffy candy": Kind("edible", "candy"),
    "candy": Kind("edible", "candy"),
    "confection": Kind("edible", "candy"),
    "hard candy": Kind("edible", "candy"),
    "mint": Kind("edible", "candy"),
    "chocolate": Kind("edible", "chocolate"),
    "cookies": Kind("edible", "baked"),
    "brownies": Kind("edible", "baked"),
    "baked good": Kind("edible", "baked"),
    "drink": Kind("edible", "beverage"),
    "beverage": Kind("edible", "beverage"),
    "syrup": Kind("edible", "syrup"),
    "condiment": Kind("edible", "cooking"),
    "cooking ingredient": Kind("edible", "cooking"),
    "cooking baking": Kind("edible", "cooking"),
    "edible oil": Kind("edible", "cooking"),
    "ice cream": Kind("edible", "frozen"),
    "frozen": Kind("edible", "frozen"),
    "snack": Kind("edible", "snacks"),
    "treat": Kind("edible", "snacks"),
    "powder": Kind("edible", "powder"),
    # tinctures and oral
    "tincture": Kind("tincture", None),
    "capsule": Kind("oral", "capsules"),
    "capsule tablet": Kind("oral", "capsules"),
    "tablet": Kind("oral", "capsules"),
    "troche": Kind("oral", "troches"),
    "sublingual": Kind("oral", "sublingual"),
    # topicals
    "balm": Kind("topical", "balm"),
    "balm and salve": Kind("topical", "balm"),
    "salve": Kind("topical", "balm"),
    "lotion": Kind("topical", "lotion"),
    "patches": Kind("topical", "patches"),
    "transdermal patches": Kind("topical", "patches"),
    "bath product": Kind("topical", "bath"),
    "bath": Kind("topical", "bath"),
    "bomb": Kind("topical", "bath"),
    "lubricant and oil": Kind("topical", "oil"),
    # growing
    "seed": Kind("cultivation", "seeds"),
    "clone": Kind("cultivation", "clones"),
    # accessories and clothes
    "rolling paper": Kind("accessory", "papers"),
    "paper rolling supply": Kind("accessory", "papers"),
    "blunt wrap": Kind("accessory", "papers"),
    "paper wrap and tip": Kind("accessory", "papers"),
    "pipe": Kind("accessory", "glass"),
    "spoon": Kind("accessory", "glass"),
    "chillum": Kind("accessory", "glass"),
    "glass": Kind("accessory", "glass"),
    "bong": Kind("accessory", "glass"),
    "bubbler": Kind("accessory", "glass"),
    "dab rig": Kind("accessory", "dabbing"),
    "dab tool": Kind("accessory", "dabbing"),
    "banger and nail": Kind("accessory", "dabbing"),
    "grinder": Kind("accessory", "grinder"),
    "battery": Kind("accessory", "battery"),
    "push button": Kind("accessory", "battery"),
    "device": Kind("accessory", "device"),
    "storage": Kind("accessory", "storage"),
    "tray": Kind("accessory", "trays"),
    "ash catcher": Kind("accessory", None),
    "torches": Kind("accessory", "lighter"),
    "lighter": Kind("accessory", "lighter"),
    "cleaning solution": Kind("accessory", "cleaning"),
    "apparel": Kind("apparel", None),
    "shirt": Kind("apparel", "shirts"),
    "short sleeve tee": Kind("apparel", "shirts"),
    "hoodie": Kind("apparel", "hoodies"),
    "hat": Kind("apparel", "hats"),
}

_OF_CATEGORY: dict[tuple[Category, str], Kind] = {
    ("accessory", "vaporizer"): Kind("accessory", "device"),
    ("accessory", "vape pen"): Kind("accessory", "device"),
    ("concentrate", "sugar leaf"): Kind("concentrate", "sugar"),  # "Gelato 33 1.0g Terp Sugar"; no leaf is among them
    ("flower", "blunt wrap"): Kind("preroll", "blunt"),  # "2.5g Infused Blunt"; the empty ones are under Gear
    ("accessory", "men"): Kind("apparel", None),
    ("accessory", "women"): Kind("apparel", None),
    ("accessory", "men s"): Kind("apparel", None),
    ("accessory", "women s"): Kind("apparel", None),
    ("vaporizer", "pull"): Kind("accessory", "battery"),
    ("edible", "taffy"): Kind("edible", "candy"),
    ("concentrate", "infused"): Kind("concentrate", None),
    ("flower", "infused"): Kind("flower", "infused"),
    ("preroll", "infused"): Kind("preroll", "infused"),
}
"""Words with another meaning in some categories."""

_STAYS: dict[Category, frozenset[str]] = {
    "accessory": frozenset(
        {"cartridge", "pod", "disposable", "pre roll", "single", "seed", "tincture", "wax", "rosin"}
    ),
    "vaporizer": frozenset(
        {"distillate", "rosin", "live rosin", "live resin", "cured resin", "sauce", "diamond", "wax", "hash", "syringe"}
    ),
    "preroll": frozenset(
        {"diamond", "rosin", "live rosin", "live resin", "hash", "kief", "distillate", "pack", "blunt"}
    ),
    "flower": frozenset({"kief", "hash", "rosin"}),
    "oral": frozenset({"rso", "syringe", "applicator", "distillate"}),
    "topical": frozenset({"oil"}),
    "tincture": frozenset({"oil", "sublingual"}),
    "edible": frozenset({"oil"}),
}
"""Subcategories that describe an item without changing its category."""


# Keys are normalized by `key`, including plurals.
_BROAD = {key(word): found for word, found in _CATEGORIES.items()}
_NARROW = {key(word): found for word, found in _SUBCATEGORIES.items()}


@lru_cache(maxsize=4096)
def kind(category: str | None, subcategory: str | None = None) -> Kind:
    """Category and subcategory of a platform's words; both None if neither word is known."""
    broad = _BROAD.get(key(category)) if category else None
    word = key(subcategory) if subcategory else ""
    if not word:
        return Kind(broad, _of_own_word(category))
    if broad is not None and (special := _OF_CATEGORY.get((broad, word))):
        return special
    narrow = _NARROW.get(word)
    if narrow is None:
        return Kind(broad, _of_own_word(category))
    if broad is not None and narrow.category != broad and word in _STAYS.get(broad, ()):
        return Kind(broad, narrow.subcategory)
    if narrow.category == "other":
        return Kind(broad, narrow.subcategory)
    return narrow


def _of_own_word(category: str | None) -> Subcategory | None:
    """Handles a category that is another platform's subcategory: Dutchie's Beverage and Seeds."""
    found = _NARROW.get(key(category)) if category else None
    return found.subcategory if found is not None else None
