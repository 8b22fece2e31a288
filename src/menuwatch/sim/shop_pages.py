"""Pages of a shop that is searched by keyword, as the real one writes them: data in a script that is no JSON, every text of the site
on every page as a translation, counts and links between the tags.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from urllib.parse import quote_plus

import msgspec

from menuwatch.sim.shop_goods import ShopProduct, ShopVariant

PER_PAGE = 60

_PHRASES = (
    "Please complete the captcha to go on", "Checking your browser - cloudflare", "Product removed", "Just a moment...",
    "Attention Required!", "Add to cart", "100 Records per page", "Page 1 of 99", "validation.html", "window.productDetailData = {};",
    "This product can\\'t be sold in your country", "Access denied", "</ script>", "Verify you are human",
)  # fmt: skip


def _translations() -> str:
    lines = [f"    'text.{n}': '{_PHRASES[n % len(_PHRASES)]}', // {n}" for n in range(1200)]
    return "<script>\n  window.__messages = {\n" + "\n".join(lines) + "\n  };\n</script>"


_TRANSLATIONS = _translations()


def refusal(number: int) -> tuple[int, str]:
    """(status, page) of a refusal; which one is told by the number."""
    kinds = (
        (403, "Just a moment...", "<p>Checking your browser before you go on.</p>"),
        (403, "Attention Required! | Cloudflare", "<p>Please complete the captcha.</p>"),
        (200, "Just a moment...", "<noscript>Enable JavaScript</noscript>"),
    )
    status, title, body = kinds[number % len(kinds)]
    return status, f"<!DOCTYPE html><html><head><title>{title}</title></head><body>{body}</body></html>"


def validation() -> str:
    """The page that doubtful visitors are sent to."""
    return "<!DOCTYPE html><html><head><title>Validation</title></head><body><div id='slider'></div></body></html>"


def results(home: str, keyword: str, found: Sequence[ShopProduct], page: int) -> str:
    """One page of results, counted from 1."""
    pages = max(1, -(-len(found) // PER_PAGE))
    shown = found[(page - 1) * PER_PAGE : page * PER_PAGE]
    cards = "\n".join(_card(good, keyword, place) for place, good in enumerate(shown))
    base = f"/search/{quote_plus(keyword)}.html"
    numbers = "".join(f'<a href="{base}?pageNum={n}">{n}</a>' for n in range(1, min(pages, 5) + 1))
    count = f"<b>{len(found)}</b>&nbsp;Records" if page % 2 else f"<span>{len(found)} Records</span>"
    return _page(
        f"{keyword} - wholesale",
        f'<h1>{escape(keyword)}</h1>{count}<div class="grid">\n{cards}\n</div>'
        f'<div class="pager">{numbers}<input value="{page}"><span>of {pages}</span></div>',
        canonical=f"{home}{base}",
    )


def product(home: str, good: ShopProduct) -> str:
    """A product's page; without data where it is no longer sold."""
    data = "{}" if good.removed else _data(good)
    return _page(
        "Product" if good.removed else good.name,
        f'<script type="text/javascript">\n  var started = +new Date();\n  window.productDetailData = {data};\n</script>'
        f"<svg><title>of 7</title></svg><p>Set of 12</p>",
        canonical=f"{home}{good.path}",
    )


def no_product() -> str:
    """What is shown for a number that nobody has."""
    return _page("Product", "<script>window.productDetailData = {};</script>")


def _page(title: str, body: str, canonical: str | None = None) -> str:
    link = "" if canonical is None else f'<link rel="canonical" href="{canonical}">'
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>{link}'
        f"<style>a > b {{ color: red }}</style></head><body><!-- 5 Records, of 9 -->\n{_TRANSLATIONS}\n{body}</body></html>"
    )


def _card(good: ShopProduct, keyword: str, place: int) -> str:
    """Links carry where they were clicked, so that the same product has several addresses."""
    path = f"{good.path}?from=search&amp;k={quote_plus(keyword)}#c{place}" if place % 3 else good.path
    return f'<div class="card"><a target="_blank" href="{path}"><img alt=""/>{escape(good.name)}</a><a href="/cart">+</a></div>'


def _data(good: ShopProduct) -> str:
    """The object, by one of the hands that have written such objects over the years."""
    return "{" + ",\n    ".join(_fields(good)) + ",}"


def _fields(good: ShopProduct) -> Iterator[str]:
    hand = good.serial % 4
    yield f"id: {_text(good.id)}"
    yield f"{('nameEn', 'productNameEn', 'entryNameEn', chr(39) + 'nameEn' + chr(39))[hand]}: {_text(good.name, single=hand == 1)}"
    if hand == 0:
        yield f"sellPriceMin: {good.price_min}, sellPriceMax: {good.price_max}"
        yield f'weight: "{good.weight:.2f}", listedNum: {good.listed}'
    elif hand == 1:
        yield f"sellPriceMin: '{good.price_min:.2f}', 'sellPriceMax': '{good.price_max:.2f}', supplier: undefined"
        yield f"productWeight: '{min(v.grams for v in good.variants):.2f}-{good.weight:.2f}', listedNum: '{good.listed}'"
    elif hand == 2:
        yield f'sellPrice: "{good.price_min:.2f} -- {good.price_max:.2f}" /* a range }} */, rating: NaN, nameEn: undefined'
        yield f"packWeight: {good.weight}, listCount: {good.listed}"
    else:
        yield "// what it costs is with its variants: {\n    sellPrice: null"
        yield f"listedNum: {good.listed}"
        yield "tree: {a: [{b: '}]'},], c: {},}"
    pictures = [_text(one) for one in good.images]
    if hand == 1:
        yield f"productImageSet: {_text(msgspec.json.encode(good.images).decode())}"
    else:
        yield f"bigImage: {pictures[0] if pictures else 'undefined'}, images: [{', '.join([*pictures, ''])}]"
    yield f"remark: {_text('<p>It said: window.productDetailData = {} </p></script>')}"
    rows = ",\n      ".join(_variant(variant, hand) for variant in good.variants)
    yield f"variants: [{rows},]"


def _variant(variant: ShopVariant, hand: int) -> str:
    price = str(variant.price) if hand % 2 else _text(f"{variant.price:.2f}")
    grams = str(variant.grams) if hand < 2 else _text(f"{variant.grams:.2f}")
    sku, name = "sku" if hand < 2 else "variantSku", _text(variant.name, single=hand == 2)
    return (
        f"{{vid: {_text(variant.vid)}, {sku}: {_text(variant.sku)}, variantKey: {name}, "
        f"sellPrice: {price}, packWeight: {grams}}}"
    )


def _text(text: str, *, single: bool = False) -> str:
    """As a string of JavaScript that ends no script."""
    quoted = msgspec.json.encode(text).decode().replace("</", "<\\/")
    if not single:
        return quoted
    return "'" + quoted[1:-1].replace('\\"', '"').replace("'", "\\'") + "'"
