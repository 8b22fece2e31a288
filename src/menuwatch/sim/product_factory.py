"""Making the products of one store: names, sizes, brands, laboratory results, in the mixture of the recorded menus."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from menuwatch.sim.model import Brand, Cannabinoid, Content, Lab, Picture, SimProduct, SimStore
from menuwatch.sim.pictures.subject import Subject, View, digits_of, logo_subject, product_subject
from menuwatch.sim.platform import Sizes, sim_platform
from menuwatch.sim.words import BRAND_TEXT, BRANDS, CANNABINOIDS, EFFECTS, NOUNS, STRAINS, SUBCATEGORIES

_CATEGORIES = (
    "Flower", "Pre-Rolls", "Vaporizers", "Concentrate", "Edible", "Tincture", "Topicals", "Oral", "Accessories",
)  # fmt: skip
_WEIGHTS = (30, 10, 20, 12, 11, 3, 3, 3, 8)

# Options with their grams (None: not a weight) and a price in dollars, by how the store writes sizes.
_Sizes = tuple[tuple[tuple[str, float | None, int], ...], ...]
_E, _Q, _H, _O = ("1/8oz", 3.5, 34), ("1/4oz", 7.0, 62), ("1/2oz", 14.0, 110), ("1oz", 28.0, 190)
_OUNCES: dict[str, _Sizes] = {
    "Flower": ((_E,), (_E,), (_E, _Q), (_E, _Q, _H, _O), (_O,), (("1g", 1.0, 11),), (_H, _E)),
    "Pre-Rolls": ((("1g", 1.0, 10),), ((".5g", 0.5, 7),), (("N/A", None, 24),), ((".5g", 0.5, 7), ("1g", 1.0, 11))),
    "Vaporizers": (((".5g", 0.5, 30),), (("1g", 1.0, 52),), ((".3g", 0.3, 24),)),
    "Concentrate": ((("1gC", 1.0, 43),), (("3.5gC", 3.5, 120),), (("2gC", 2.0, 70), ("1gC", 1.0, 40))),
}  # fmt: skip
_GRAMS: dict[str, _Sizes] = {
    "Flower": (
        (("3.5g", 3.5, 35),), (("7g", 7.0, 40),), (("28g", 28.0, 128),), (("7g", 7.0, 39), ("28g", 28.0, 127)),
        (("3.5g", 3.5, 30), ("14g", 14.0, 99)), (("3.5g", 3.5, 25), ("7g", 7.0, 45), ("28.3g", 28.3, 150)), (("1g", 1.0, 10),),
    ),
    "Pre-Rolls": ((("1g", 1.0, 9),), (("1.2g", 1.2, 12),), (("0.375g", 0.375, 6),)),
    "Vaporizers": (((".5g", 0.5, 33),), (("1g", 1.0, 55),), ((".4g", 0.4, 28),)),
    "Concentrate": ((("1g", 1.0, 40),), (("3g", 3.0, 95),), ((".6g", 0.6, 30),)),
}  # fmt: skip
_PACKS: dict[str, _Sizes] = {
    "Edible": ((("N/A", None, 18),), (("10pk/100mg", None, 22),), (("10pk/100mg", None, 22), ("20pk/200mg", None, 38))),
    "Tincture": ((("N/A", None, 45),),),
    "Topicals": ((("N/A", None, 36),),),
    "Oral": ((("N/A", None, 25),),),
    "Accessories": ((("N/A", None, 22),), (("N/A", None, 12),)),
}  # fmt: skip
# Sizes of an edible at a point of sale are the mass of THC, not of the product.
_DOSES: _Sizes = ((("0.025g", None, 8),), (("0.1g", None, 22),), (("0.02g", None, 6), ("0.1g", None, 21)))

_RAW = {"1/8oz": "3.5g", "1/4oz": "7.0g", "1/2oz": "14.0g", "1oz": "28.0g"}
_STRAIN_TYPES = (
    "Indica", "Sativa", "Hybrid", "Hybrid", "Indica-Hybrid", "Sativa-Hybrid", "N/A", "High CBD", "1 to 1", None,
)  # fmt: skip


def object_id(rng: Random) -> str:
    """24 hexadecimal digits, as most ids are."""
    return f"{rng.getrandbits(96):024x}"


def meteor_id(rng: Random) -> str:
    """17 letters and digits, as ids of the oldest stores are."""
    return "".join(rng.choices("23456789ABCDEFGHJKLMNPQRSTWXYZabcdefghijkmnopqrstuvwxyz", k=17))


def uuid(rng: Random) -> str:
    text = f"{rng.getrandbits(128):032x}"
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"


def slug_of(text: str) -> str:
    """Lower case, hyphens for everything that is no letter or digit."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def make_brands(rng: Random, image_base: str) -> tuple[Brand, ...]:
    """The brands of the whole market."""

    def logo(name: str) -> str | None:
        rng.getrandbits(128)
        return f"{image_base}/dutchie-images/{digits_of(logo_subject(name))}"

    return tuple(
        Brand(
            id=uuid(rng),
            name=name,
            label=label,
            parent_id=uuid(rng) if rng.random() < 0.8 else None,
            logo=logo(name) if rng.random() < 0.9 else None,
            description=_from_a_sentence(rng.randrange(200)) if rng.random() < 0.8 else "",
        )
        for name, label in BRANDS
    )


def _from_a_sentence(place: int) -> str:
    """The text about a brand from the first sentence that begins after this place."""
    return BRAND_TEXT[BRAND_TEXT.index(". ", place) + 2 :]


class ProductFactory:
    """Makes the products of one store, one after the other; the same generator state gives the same products."""

    def __init__(self, store: SimStore, brands: Sequence[Brand], image_base: str, opened_ms: int) -> None:
        self._store = store
        self._brands = brands
        self._images = f"{image_base}/dutchie-images"
        self._opened_ms = opened_ms
        self._platform = sim_platform(store.platform) if store.platform != "dutchie" else None
        self._last: SimProduct | None = None

    def make(self, rng: Random, serial: int, now_ms: int) -> tuple[SimProduct, tuple[int, ...]]:
        """A product and its prices, in cents."""
        store = self._store
        (category,) = rng.choices(_CATEGORIES, _WEIGHTS)
        sizes = self._sizes(rng, category)
        twin = self._last if self._last is not None and rng.random() < 0.03 else None
        brand = twin.brand if twin is not None else rng.choice(self._brands) if rng.random() > 0.004 else None
        # A twin goes by the same name and brand, under an id of its own and in other sizes.
        same_name = twin is not None and twin.category == category
        name = twin.name if twin is not None and same_name else self._name(rng, category, brand, sizes)
        cents = self._prices(rng, sizes)
        options = tuple(size[0] for size in sizes)
        slug = slug_of(name)
        counting = store.counting if rng.random() > 0.012 else "none"
        childless: frozenset[int] = frozenset()
        strays: tuple[str, ...] = ()
        if counting == "pos" and len(set(options)) > 1 and rng.random() < 0.04:
            childless = frozenset({len(options) - 1})
        elif counting == "pos" and category == "Flower" and rng.random() < 0.15:
            strays = tuple(s for s in ("3.5g", "28g", "14g") if s not in options)[:1]
        picture_urls = self._pictures(rng, category)
        product = SimProduct(
            id=self._id(rng, serial),
            serial=serial,
            category=category,
            subcategory=self._subcategory(rng, category),
            name=name,
            slug=slug,
            past_slugs=self._past(rng, slug),
            brand=brand,
            strain="N/A" if category == "Accessories" else rng.choice(_STRAIN_TYPES),
            options=options,
            raw_options=self._raw_options(rng, options),
            net_weight=self._net_weight(sizes),
            image="",
            images=None,
            created_ms=now_ms - rng.randrange(1, 400 * 86_400_000),
            rank=self._rank(rng, serial),
            featured_ms=self._opened_ms - rng.randrange(86_400_000) if rng.random() < 0.02 else None,
            description=self._description(rng),
            effects=rng.choice(EFFECTS),
            counting=counting,
            childless=childless,
            strays=strays,
            crooked=len(options) > 1 and rng.random() < 0.02,
            library_id=object_id(rng) if rng.random() < 0.4 and not store.old else None,
            enterprise_id=object_id(rng) if store.old or rng.random() < 0.3 else None,
            duplicated_id=(meteor_id if rng.random() < 0.2 else object_id)(rng) if rng.random() < 0.05 else None,
            pos_number=str(rng.randrange(100_000, 9_999_999)),
        )
        image, images = picture_urls(_shown(product, sizes[0][1]))
        self._last = replace(product, image=image, images=images)
        return self._last, cents

    def _id(self, rng: Random, serial: int) -> str:
        named = self._platform.product_id(rng, self._store, serial) if self._platform is not None else None
        return named if named is not None else object_id(rng)

    def _sizes(self, rng: Random, category: str) -> Sizes:
        given = self._platform.sizes(rng, category) if self._platform is not None else None
        if given is not None:
            return given
        if category == "Edible" and self._store.counting == "pos" and rng.random() < 0.6:
            return rng.choice(_DOSES)
        if category in _PACKS:
            return rng.choice(_PACKS[category])
        sizes = rng.choice((_GRAMS if self._store.counting == "pos" else _OUNCES)[category])
        if len(sizes) == 2 and rng.random() < 0.02:
            return (sizes[0], sizes[0])  # the same size twice, each with its own price and stock
        return sizes

    def _name(self, rng: Random, category: str, brand: Brand | None, sizes: Sizes) -> str:
        noun = rng.choice(NOUNS[category])
        if category == "Accessories":
            return f"{noun} | Assorted Colors" if rng.random() < 0.5 else noun
        strain = rng.choice(STRAINS)
        if rng.random() < 0.25:
            strain = f"{strain} x {rng.choice(STRAINS)}"
        shape = rng.random()
        if shape < 0.05:
            whole = f"{strain} {noun} by {brand.name.strip() if brand is not None else 'us'}"
            return f"{whole} - {whole}"
        if shape < 0.09:
            return f"{strain}  | {noun} | {sizes[0][0]}"
        if shape < 0.11:
            return f"{strain} {noun} (Small Batch, No. {rng.randrange(1, 12)})"
        if shape < 0.13:
            return f"{strain} {noun} *{rng.randrange(2000, 3900) / 100}% TAC* "
        if shape < 0.45 and category == "Flower":
            return strain
        return f"{strain} | {noun} | {sizes[0][0]}" if sizes[0][0] not in ("N/A", "each") else f"{strain} | {noun}"

    def _prices(self, rng: Random, sizes: Sizes) -> tuple[int, ...]:
        factor = rng.uniform(0.7, 1.5)
        if self._store.old:
            return tuple(int(price * factor * 100) for _, _, price in sizes)
        return tuple(max(1, round(price * factor + place * 0.4)) * 100 for place, (_, _, price) in enumerate(sizes))

    def _subcategory(self, rng: Random, category: str) -> str | None:
        if self._store.old and category == "Flower":
            return rng.choice(("", "", "", None, None, "pre-ground"))
        return rng.choice(SUBCATEGORIES[category])

    def _past(self, rng: Random, slug: str) -> tuple[str | None, ...]:
        if self._store.old:
            return (slug,) if rng.random() < 0.5 else (slug, f"{slug}-{rng.randrange(10, 99)}")
        return (None, slug, *(f"{slug}-{n}" for n in range(rng.choice((0, 0, 0, 1, 2, 5)))))

    def _raw_options(self, rng: Random, options: tuple[str, ...]) -> tuple[str, ...] | None:
        if self._store.counting != "pos":
            return () if rng.random() < 0.7 else None
        return tuple(_RAW.get(option, option) for option in options)

    def _net_weight(self, sizes: Sizes) -> tuple[int, ...]:
        """Milligrams of the first size only, and nothing at all from three sizes on: as the platform has it."""
        first = sizes[0][1]
        return (round(first * 1000),) if first is not None and len(sizes) < 3 else ()

    def _pictures(self, rng: Random, category: str) -> Callable[[Subject], tuple[str, tuple[Picture, ...] | None]]:
        """Chooses pictures; what they show is known once the product is made."""
        dice = rng.random()
        if dice < 0.04:
            stock = f"{self._images}/{slug_of(category)}-stock-{rng.randrange(1, 15)}-v1.jpg"
            return lambda _: (stock, None)
        if dice < 0.06:
            return lambda _: ("", ())
        # Many products share the picture of their brand and kind.
        shared = dice < 0.4
        salt = rng.randrange(40) if shared else rng.getrandbits(64)
        text: str | None = None if self._store.old and rng.random() < 0.8 else ""
        more = [(rng.getrandbits(128), rng.random() > 0.01) for _ in range(rng.choice((0, 0, 0, 0, 1, 2)))]

        def urls(shown: Subject) -> tuple[str, tuple[Picture, ...]]:
            front = replace(shown, salt=salt)
            if shared:
                alike = Random(f"{shown.noun}:{shown.brand}").getrandbits(63)
                front = Subject(shown.category, shown.noun, brand=shown.brand, salt=alike)
            subjects = [(front, True)]
            views = (View.CONTENTS, View.BACK)
            subjects.extend((replace(shown, view=views[i], salt=n), active) for i, (n, active) in enumerate(more))
            pictures = tuple(
                Picture(f"{self._images}/{digits_of(subject)}", text, active=active) for subject, active in subjects
            )
            return pictures[0].url, pictures

        return urls

    def _rank(self, rng: Random, serial: int) -> int:
        if self._store.old:
            return 1000 if rng.random() < 0.35 else 9_999_999
        return serial % 40 + 1

    def _description(self, rng: Random) -> str:
        dice = rng.random()
        if dice < 0.4:
            return ""
        if dice < 0.5:
            return "."
        if dice < 0.7:
            return f"BATCH: PR.{rng.randrange(240101, 251231)}{rng.choice('FGH')}"
        return f"Notes of {rng.choice(STRAINS).lower()} and pine.\nStore in a cool place – Δ9 and all."


def _shown(product: SimProduct, grams: float | None) -> Subject:
    """What the product's own picture shows."""
    return product_subject(
        product.category,
        product.name,
        brand=product.brand.name if product.brand is not None else None,
        strain_type=product.strain,
        option=product.options[0],
        grams=grams,
        salt=0,
    )


def make_lab(rng: Random, category: str, *, old: bool, pos: bool) -> Lab:
    """Laboratory results of a batch, in the units that the platform mixes."""
    if category == "Accessories":
        nothing = Content("PERCENTAGE", None)
        return Lab(nothing, nothing, ())
    if rng.random() < 0.027:
        return Lab(None, None, None)
    if category in ("Edible", "Tincture", "Topicals", "Oral"):
        return _dosed(rng)
    strong = {"Flower": (15, 33), "Pre-Rolls": (18, 40), "Vaporizers": (65, 90), "Concentrate": (68, 92)}[category]
    if old:
        low = rng.randrange(*strong)
        high = low + rng.randrange(2, 8)
        if rng.random() < 0.3:
            return Lab(
                Content("MILLIGRAMS_PER_GRAM", (low * 10, high * 10)), Content("MILLIGRAMS_PER_GRAM", (0, 10)), None
            )
        cbd: tuple[float, ...] = (0, 1) if rng.random() < 0.6 else (1,)
        return Lab(Content("PERCENTAGE", (low, high)), Content("PERCENTAGE", cbd), None if rng.random() < 0.24 else ())
    acid, free = round(rng.uniform(*strong), 3), round(rng.uniform(0.3, 4), 3)
    cbg = round(rng.uniform(0.05, 2), 3)
    total = round(acid + free, 3)
    name = CANNABINOIDS
    rows = [Cannabinoid(name["THCA"], acid, "PERCENTAGE"), Cannabinoid(name["D9"], free, "PERCENTAGE")]
    if pos and rng.random() < 0.12:
        rows[1] = Cannabinoid(name["D9"], round(free * 10, 2), "MILLIGRAMS_PER_GRAM")
    rows.append(Cannabinoid(name["CBG"], cbg, "PERCENTAGE" if rng.random() < 0.9 else "MILLIGRAMS_PER_GRAM"))
    if rng.random() < 0.5:
        rows.append(Cannabinoid(name["CBGA"], round(rng.uniform(0, 3), 3), "PERCENTAGE"))
    if rng.random() < 0.6:
        rows.append(Cannabinoid(name["TAC"], round(total + cbg, 3), "PERCENTAGE"))
    dice = rng.random()
    cbd_content = (
        Content("PERCENTAGE", (round(rng.uniform(0, 12), 2),)) if dice < 0.1 else
        None if dice < 0.13 else Content("PERCENTAGE", None)
    )  # fmt: skip
    return Lab(Content("PERCENTAGE", (total,)), cbd_content, tuple(rows))


def _dosed(rng: Random) -> Lab:
    """Whole packages: milligrams, a tenth of them wrongly marked as percent."""
    dose = rng.choice((5, 10, 50, 100, 500, 1000))
    if rng.random() < 0.1:
        return Lab(Content("PERCENTAGE", (round(dose / 1400, 2),)), Content("PERCENTAGE", None), ())
    cbd = Content("MILLIGRAMS", (dose / 2,)) if rng.random() < 0.15 else Content("MILLIGRAMS", None)
    rows = (Cannabinoid(CANNABINOIDS["D9"], dose, "MILLIGRAMS"),) if rng.random() < 0.6 else ()
    return Lab(Content("MILLIGRAMS", (dose,)), cbd, rows)
