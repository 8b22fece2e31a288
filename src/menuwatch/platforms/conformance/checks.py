"""The checks: of a sample, of what its items become when they are changed, and of pages and menus."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

import msgspec

from menuwatch.catalog.model import Product
from menuwatch.core.errors import BadPayload
from menuwatch.platforms import fields
from menuwatch.platforms.conformance.sample import Sample, ScriptedSession, removed, replaced, with_raw, written
from menuwatch.platforms.conformance.soundness import problems
from menuwatch.platforms.model import Menu, Normalized
from menuwatch.platforms.paging import whole_menu

if TYPE_CHECKING:
    from menuwatch.core.http import Session

Check = Callable[[Sample], None]

HOSTILE: tuple[bytes, ...] = (
    b"null", b"true", b"0", b"-1", b"-0.5", b"7.5", b"1e400", b"-1e400", b"1e-400", b"123456789012345678901234567890",
    b"9" * 5000, b"NaN", b"Infinity", b'""', b'" "', b'"made_up"', b'"-1"', b'"NaN"', b'"1e400"', b'"12,50"', b'"$12.50"',
    b'"2024-13-45T99:99:99Z"', b'"a\\u0000b"', b'"\\u0000"', b'"\\ud83d"', b'"\xff"', b'"' + b"x" * 3000 + b'"', b"[]", b"{}",
    b"[null]", b"[[[[]]]]", b'[{"x":{}}]', b'{"x":[{}]}', b"[" * 2000 + b"]" * 2000,
)  # fmt: skip
"""Values that a field may have instead of its own; some are no JSON."""

_NO_MENUS: tuple[bytes, ...] = (
    b"", b" ", b"null", b"true", b"7", b'"menu"', b"{}", b"[[]]", b'{"data":null}', b'{"data":{}}', b'{"data":7}',
    b'{"errors":[{"message":"no"}]}', b'{"errors":[{"message":"no"}],"data":null}', b"<!doctype html><title>Stop</title>",
    b"Too many requests", b"\xff\xfe\x00", b"[" * 100_000, b'{"a":' * 100_000,
)  # fmt: skip
"""Bodies without a menu."""


def _normalize(sample: Sample, items: Sequence[bytes], what: str) -> Normalized:
    try:
        return sample.adapter.normalize([msgspec.Raw(item) for item in items])
    except Exception as error:
        raise AssertionError(f"{what}: normalize raised {type(error).__name__}: {error}") from error


def _alone(sample: Sample, item: bytes) -> Sequence[Product]:
    """The products of an item of the sample, read once."""
    if item not in sample.products:
        sample.products[item] = _normalize(sample, [item], "an item of the sample").products
    return sample.products[item]


def _product(sample: Sample, item: bytes, what: str) -> Product | None:
    """The product of an item beside another one, None if it was dropped; checks what must hold for both."""
    identity = sample.adapter.identity(msgspec.Raw(item))
    neighbours = (raw for raw in sample.raws[:50] if sample.adapter.identity(msgspec.Raw(raw)) != identity)
    others = list(itertools.islice(neighbours, 1))
    alone = tuple(product for other in others for product in _alone(sample, other))
    around = _normalize(sample, [*others, item], what)
    products = [product for product in around.products if product not in alone]
    assert len(around.products) == len(products) + len(alone), f"{what}: it changed the product of another item"
    fatal = [warning for warning in around.warnings if warning.fatal]
    if not products:
        assert len(fatal) == 1, f"{what}: the item was dropped with {len(fatal)} fatal warnings instead of one"
        assert fatal[0].message, f"{what}: the item was dropped without a reason"
        return None
    assert len(products) == 1, f"{what}: one item gave {len(products)} products"
    product = products[0]
    assert product.provider_product_id == identity, (
        f"{what}: the product is {product.provider_product_id!r}, `identity` says {identity!r}"
    )
    wrong = list(problems(product, around.warnings))
    assert not wrong, f"{what}: {wrong[0]}"
    return product


def every_item_is_read(sample: Sample) -> None:
    """Every item of the sample gives a sound product with an id of its own, without a warning that drops one."""
    assert len(sample.raws) >= 2, "a sample has two items or more: neighbours must not affect each other"
    for number, raw in enumerate(sample.raws):
        made = _normalize(sample, [raw], f"item {number + 1}")
        assert made.products, f"item {number + 1} was dropped: {made.warnings}"
        _product(sample, raw, f"item {number + 1}")
    made = _normalize(sample, sample.raws, "the sample")
    assert [product.provider_product_id for product in made.products] == list(
        dict.fromkeys(sample.adapter.identity(msgspec.Raw(raw)) for raw in sample.raws)
    ), "products are not in the order of their items"
    priced = [
        variant for product in made.products for variant in product.variants if variant.price_rec or variant.price_med
    ]
    assert priced, "no product of the sample has a price"


def every_field_is_declared(sample: Sample) -> None:
    """Each field of the sample's pages is declared as used, kept or ignored, with a note."""
    documents = [document for page in sample.pages for document in sample.adapter.documents(page)]
    rows = fields.coverage(sample.adapter.fields, documents)
    undeclared = [row.path for row in rows if row.use == fields.UNDECLARED]
    assert not undeclared, f"undeclared fields: {', '.join(undeclared)}: add them to FIELDS"
    silent = [field.path for field in sample.adapter.fields if not field.note.strip()]
    assert not silent, f"declared without a column or a reason: {', '.join(silent)}"
    twice = [path for path, count in Counter(field.path for field in sample.adapter.fields).items() if count > 1]
    assert not twice, f"declared twice: {', '.join(twice)}"


def replays_are_idempotent(sample: Sample) -> None:
    """The same items give the same products, together and one by one, in any order, and however the JSON is written."""
    once = _normalize(sample, sample.raws, "the sample")
    assert _normalize(sample, sample.raws, "the sample") == once, "a second reading gives other products"
    products = {product.provider_product_id: product for product in once.products}
    for item in sample.varied:
        name = sample.adapter.identity(msgspec.Raw(item)) or ""
        decoded = msgspec.json.decode(item)
        for what, text in (
            ("alone", item),
            ("with its keys in another order", msgspec.json.encode(_turned(decoded))),
            ("with white space", msgspec.json.format(msgspec.json.encode(decoded), indent=3)),
        ):
            made = _normalize(sample, [text], what).products
            assert made == (products[name],), f"item {name} {what} gives another product"
    rewritten = sample.page(sample.raws)
    items = [bytes(raw) for page in sample.adapter.split_menu([rewritten]) for raw in page]
    assert _normalize(sample, items, "a page of them").products == once.products, (
        "a page of the same items gives others"
    )


def _turned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _turned(value[key]) for key in reversed(value)}
    return [_turned(entry) for entry in value] if isinstance(value, list) else value


def missing_fields_are_tolerated(sample: Sample) -> None:
    """Without any one field, an item gives a sound product with the id that `identity` says, or is dropped with one fatal warning."""
    for item, path, _ in sample.places():
        _product(sample, msgspec.json.encode(removed(item, path)), f"without {written(path)}")


def hostile_values_are_tolerated(sample: Sample) -> None:
    """With any one value replaced by one of another type, out of bounds, or no JSON at all, too."""
    for item, path, _ in sample.places():
        for raw in HOSTILE:
            _product(sample, with_raw(item, path, raw), f"{written(path)} = {raw.decode('utf-8', 'replace'):.60}")
    for raw in (*HOSTILE, b"[1]", b'"item"', b'{"id":{}}', b'{"id":' * 3000 + b"1" + b"}" * 3000):
        _product(sample, raw, f"an item {raw.decode('utf-8', 'replace'):.60}")


def unknown_words_are_tolerated(sample: Sample) -> None:
    """An unknown word in a text drops no product: platforms add categories, strain types, units and kinds of specials."""
    for item, path, value in sample.places():
        if not isinstance(value, str) or not value or any(sign.isdigit() for sign in value):
            continue
        usual = _product(sample, msgspec.json.encode(item), "the item itself")
        what = f"{written(path)} = 'made up word'"
        made = _product(sample, msgspec.json.encode(replaced(item, path, "made up word")), what)
        assert made is not None or usual is None, f"{what}: the item is dropped"


def prices_are_exact(sample: Sample) -> None:
    """A price becomes the product's to the cent: in dollars or in cents, as a number or as a text. Of a price that is no number or
    below zero, nothing is left."""
    found = 0
    for item, path, value in sample.places():
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            continue
        for raw in (b"4711", b"47.11"):
            text = b'"%b"' % raw if isinstance(value, str) else raw
            product = _product(sample, with_raw(item, path, text), f"{written(path)} = {text.decode()}")
            prices = {} if product is None else _all_prices(product)
            found += Decimal("47.11") in prices
            near = [
                price
                for price in prices
                if price != Decimal("47.11") and abs(price - Decimal("47.11")) < Decimal("0.001")
            ]
            assert not near, (
                f"{written(path)} = {text.decode()} became {near[0]}: read money as Decimal, never as a float"
            )
    assert found, "no field of the sample becomes a price as it is"


def _all_prices(product: Product) -> set[Decimal]:
    return {
        price
        for variant in product.variants
        for price in (variant.price_rec, variant.price_med, variant.special_rec, variant.special_med)
        if price is not None
    }


def specials_are_no_dearer(sample: Sample) -> None:
    """A product of the sample costs no more with its special than without, and a special price has a regular one beside it."""
    for product in _normalize(sample, sample.raws, "the sample").products:
        for place, variant in enumerate(product.variants):
            for regular, special in (
                (variant.price_rec, variant.special_rec),
                (variant.price_med, variant.special_med),
            ):
                where = f"{product.provider_product_id} variants[{place}]"
                assert special is None or regular is not None, f"{where} has a special price and no regular one"
                assert special is None or regular is None or special <= regular, (
                    f"{where}: special {special} of {regular}"
                )


def units_of_weight_are_known(sample: Sample) -> None:
    """A weight in an unknown unit is left out: never taken for grams."""
    for item, path, value in sample.places():
        if isinstance(value, str) and value.lower() in (
            "g",
            "gram",
            "grams",
            "oz",
            "ounce",
            "ounces",
            "mg",
            "milligrams",
        ):
            usual = _product(sample, msgspec.json.encode(item), "the item itself")
            made = _product(sample, msgspec.json.encode(replaced(item, path, "furlong")), written(path))
            known = {variant.weight_g for variant in usual.variants} if usual is not None else set()
            new = {variant.weight_g for variant in made.variants} if made is not None else set()
            assert new <= {*known, None}, f"{written(path)} = 'furlong' gives a weight of {new - known}"


def bodies_without_a_menu_are_refused(sample: Sample) -> None:
    """A body that is not a menu, is cut off, or has too many items raises BadPayload; an empty menu one of kind empty."""
    page = sample.page(sample.raws[:3])
    cut = [page[: len(page) * part // 16] for part in range(1, 16)]
    flood = sample.page([b"{}"] * 200_001)
    for body in (*_NO_MENUS, *cut, page[:-1], flood):
        for read in (sample.adapter.read_page, sample.adapter.split, sample.adapter.totals):
            shown = f"{len(body)} bytes {body[:40]!r}"
            try:
                read(body)
            except BadPayload:
                continue
            except Exception as error:
                raise AssertionError(f"{shown}: {type(error).__name__} instead of BadPayload: {error}") from error
            raise AssertionError(f"{shown}: was taken for a menu")
    kind = ""
    try:
        sample.adapter.split(sample.page([], 0))
    except BadPayload as error:
        kind = error.kind
    assert kind == "empty", f"`split` refuses a menu without products as {kind or 'nothing'} instead of empty"
    assert sample.adapter.read_page(sample.page([], 0)).items == [], "`read_page` reads an empty page"


def menus_are_paged(sample: Sample) -> None:
    """All products of a menu are found, each once: with full pages, short ones, clamped ones, repeated ones, and totals that lie."""
    per_page = sample.adapter.per_page
    items = sample.scaled(per_page * 2 + per_page // 2)
    size = len(items)

    def of(length: int, total: int = size) -> Callable[[int], bytes]:
        return lambda number: sample.page(items[number * length : (number + 1) * length], total)

    cases: dict[str, tuple[Callable[[int], bytes], int]] = {
        "full pages": (of(per_page), size),
        "clamped pages": (of(max(1, per_page // 2)), size),
        "a total that is too high": (of(per_page, size + 9), size),
        "a total that is too low": (of(per_page, size - 9), size),
        "a short page": (
            lambda n: sample.page([b for b in _cut(items, per_page, n) if n != 1 or b not in items[-9:]], size),
            size,
        ),
        "pages that repeat the one before": (lambda n: sample.page(_cut(items, per_page, min(n, 2)), size), size),
    }
    for what, (answer, count) in cases.items():
        menu = _fetch(sample, answer, what)
        assert menu.product_count == count, f"{what}: {menu.product_count} of {count} products ({menu.notes})"
    only_first = _fetch(sample, lambda _: sample.page(items[:per_page], size), "only the first page, again and again")
    assert only_first.product_count == per_page, "only the first page: other products than it has"
    if sample.total:
        assert not only_first.complete, "a menu of which pages are missing is complete"
        assert sample.adapter.read_page(of(per_page)(0)).total_count == size, f"{sample.total} is not the total"


def _cut(items: Sequence[bytes], per_page: int, number: int) -> Sequence[bytes]:
    return items[number * per_page : (number + 1) * per_page]


def _fetch(sample: Sample, answer: Callable[[int], bytes], what: str) -> Menu:
    """The menu as the adapter requests it, or as its pages are read."""
    adapter = sample.adapter
    store = adapter.store_of([msgspec.Raw(raw) for raw in sample.raws]) or "1"

    async def page(number: int) -> tuple[bytes, Any]:
        body = answer(number)
        return body, adapter.read_page(body).inspect(adapter.identity)

    async def pause() -> None:
        return None

    async def fetch() -> Menu:
        if sample.page_number is None:
            return await whole_menu(page, per_page=adapter.per_page, store=store, pause=pause)
        return await adapter.fetch_menu(cast("Session", ScriptedSession(sample, answer)), store)

    try:
        return asyncio.run(fetch())
    except Exception as error:
        raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error


def stores_are_recognized(sample: Sample) -> None:
    """A store that the items name has one id; the example of an address is the platform's, and no other address is."""
    adapter = sample.adapter
    items = [msgspec.Raw(raw) for raw in sample.raws]
    found, store = adapter.store_in(items), adapter.store_of(items)
    assert (found.platform_dispensary_id if found is not None else None) == store, "store_in and store_of disagree"
    for url in (
        "",
        "https://",
        "https://example.com/",
        "https://example.com/stores/x",
        "::",
        "https://[",
        "\0",
        "x" * 3000,
    ):
        assert adapter.slug_of(url) is None, f"{url[:60]!r} is taken for an address of {adapter.name}"
    if adapter.example_url:
        assert adapter.slug_on_site(adapter.example_url), f"example_url {adapter.example_url} has no slug"


CHECKS: tuple[Check, ...] = (
    every_item_is_read,
    every_field_is_declared,
    replays_are_idempotent,
    missing_fields_are_tolerated,
    hostile_values_are_tolerated,
    unknown_words_are_tolerated,
    prices_are_exact,
    specials_are_no_dearer,
    units_of_weight_are_known,
    bodies_without_a_menu_are_refused,
    menus_are_paged,
    stores_are_recognized,
)
"""All checks, by their names."""
