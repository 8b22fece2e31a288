"""A shop on loopback with a keyword search: pages of 60 results, product pages above 50 kB, refusals below 5 kB.

`/search/{words}.html?pageNum=n`, `/product/{name}-p-{number}.html`; without the name it redirects to the page with it. Which
request is refused follows from the seed and from how often its URL was requested, so runs are reproducible in any order of requests.

Pages are as the real site writes them: data in a script that is no JSON, every text of the site on every page as a translation, counts
and links between the tags.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from html import escape
from urllib.parse import quote_plus, unquote_plus

import msgspec

from menuwatch.sim.http import HttpServer, Request, Response
from menuwatch.sim.shop_catalog import ShopCatalog, ShopProduct, ShopVariant

KEYWORDS = ("led lamp", "dog leash", "phone case")
_SEARCH = re.compile(r"/search/([^/]+)\.html")
_PRODUCT = re.compile(r"/product/([^/]*)-p-([0-9]+)\.html")
_BROWSER = "Mozilla/5.0"
_HTML = "text/html; charset=utf-8"
PER_PAGE = 60

_PHRASES = (
    "Please complete the captcha to go on", "Checking your browser - cloudflare", "Product removed", "Just a moment...",
    "Attention Required!", "Add to cart", "100 Records per page", "Page 1 of 99", "validation.html", "window.productDetailData = {};",
    "This product can\\'t be sold in your country", "Access denied", "</ script>", "Verify you are human",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusals:
    """Blocking of visitors. `rate` is the share of requests that are refused; `picky`: clients without a browser's User-Agent get
    a validation page."""

    rate: float = 0.0
    picky: bool = False


class Shop:
    """The shop's web site. `start`, then `url` is its address."""

    def __init__(self, catalog: ShopCatalog | None = None, *, refusals: Refusals | None = None, seed: int = 1) -> None:
        self.catalog = catalog if catalog is not None else ShopCatalog(KEYWORDS, seed=seed)
        self.refusals = refusals if refusals is not None else Refusals()
        self.requests: Counter[str] = Counter()
        """Requests by URL, including redirects and refusals."""
        self.served: Counter[str] = Counter()
        """Pages of the shop served, by URL."""
        self._seed = seed
        self._server = HttpServer(self._answer)

    @property
    def url(self) -> str:
        """Scheme, address and port."""
        return self._server.url

    async def start(self, port: int = 0) -> None:
        """Listens; 0 takes a free port."""
        await self._server.start(port)

    async def close(self) -> None:
        """Stops."""
        await self._server.close()

    def expected(self, *keywords: str, pages: int = 10) -> dict[str, ShopProduct]:
        """The products that a complete crawl of these keywords finds, by id, including removed ones."""
        return self.catalog.reached(keywords, limit=pages * PER_PAGE)

    async def _answer(self, request: Request) -> Response:
        if request.path == "/validation.html":
            return _html(_validation_page())
        search, product = _SEARCH.fullmatch(request.path), _PRODUCT.fullmatch(request.path)
        if search is None and product is None:
            return Response(404, b"<html><body>Not found</body></html>", _HTML)
        page = request.query.get("pageNum", "1")
        address = request.path if search is None or page == "1" else f"{request.path}?pageNum={page}"
        self.requests[address] += 1
        if self.refusals.picky and _BROWSER not in request.headers.get("user-agent", ""):
            return Response(302, headers={"Location": "/validation.html"})
        chance = self._chance(address, self.requests[address])
        if chance < self.refusals.rate:
            kind = int(chance / self.refusals.rate * 4)
            if kind == 3:
                return Response(302, headers={"Location": "/validation.html"})
            status, body = _refusal_page(kind)
            return _html(body, status)
        if search is not None:
            return self._results(unquote_plus(search[1]), page, address)
        assert product is not None, "one of them"
        return self._product(product[1], product[2], address)

    def _results(self, keyword: str, page: str, address: str) -> Response:
        if not re.fullmatch(r"[1-9][0-9]{0,3}", page):
            return Response(404, b"<html><body>Not found</body></html>", _HTML)
        self.served[address] += 1
        return _html(_results_page(self.url, keyword, self.catalog.search(keyword), int(page)))

    def _product(self, slug: str, product_id: str, address: str) -> Response:
        product = self.catalog.product(product_id)
        if product is None:
            return _html(_missing_product_page())
        if slug != product.slug:
            return Response(301, headers={"Location": product.path})
        self.served[address] += 1
        return _html(_product_page(self.url, product))

    def _chance(self, address: str, time: int) -> float:
        digest = blake2b(f"{self._seed}:{address}:{time}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") / 2**64


def _html(page: str, status: int = 200) -> Response:
    return Response(status, page.encode(), _HTML)


def _translations() -> str:
    lines = [f"    'text.{n}': '{_PHRASES[n % len(_PHRASES)]}', // {n}" for n in range(1200)]
    return "<script>\n  window.__messages = {\n" + "\n".join(lines) + "\n  };\n</script>"


_TRANSLATIONS = _translations()


def _refusal_page(number: int) -> tuple[int, str]:
    """(status, page) of a refusal; the number selects which one."""
    kinds = (
        (403, "Just a moment...", "<p>Checking your browser before you go on.</p>"),
        (403, "Attention Required! | Cloudflare", "<p>Please complete the captcha.</p>"),
        (200, "Just a moment...", "<noscript>Enable JavaScript</noscript>"),
    )
    status, title, body = kinds[number % len(kinds)]
    return status, f"<!DOCTYPE html><html><head><title>{title}</title></head><body>{body}</body></html>"


def _validation_page() -> str:
    """The page that suspicious visitors are redirected to."""
    return "<!DOCTYPE html><html><head><title>Validation</title></head><body><div id='slider'></div></body></html>"


def _results_page(home: str, keyword: str, products: Sequence[ShopProduct], page: int) -> str:
    """One page of results, counted from 1."""
    pages = max(1, -(-len(products) // PER_PAGE))
    shown = products[(page - 1) * PER_PAGE : page * PER_PAGE]
    cards = "\n".join(_card(product, keyword, place) for place, product in enumerate(shown))
    base = f"/search/{quote_plus(keyword)}.html"
    numbers = "".join(f'<a href="{base}?pageNum={n}">{n}</a>' for n in range(1, min(pages, 5) + 1))
    count = f"<b>{len(products)}</b>&nbsp;Records" if page % 2 else f"<span>{len(products)} Records</span>"
    return _page(
        f"{keyword} - wholesale",
        f'<h1>{escape(keyword)}</h1>{count}<div class="grid">\n{cards}\n</div>'
        f'<div class="pager">{numbers}<input value="{page}"><span>of {pages}</span></div>',
        canonical=f"{home}{base}",
    )


def _product_page(home: str, product: ShopProduct) -> str:
    """A product's page; without data where it is no longer sold."""
    data = "{}" if product.removed else _data(product)
    return _page(
        "Product" if product.removed else product.name,
        f'<script type="text/javascript">\n  var started = +new Date();\n  window.productDetailData = {data};\n</script>'
        f"<svg><title>of 7</title></svg><p>Set of 12</p>",
        canonical=f"{home}{product.path}",
    )


def _missing_product_page() -> str:
    """The page for an unknown product number."""
    return _page("Product", "<script>window.productDetailData = {};</script>")


def _page(title: str, body: str, canonical: str | None = None) -> str:
    link = "" if canonical is None else f'<link rel="canonical" href="{canonical}">'
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>{link}'
        f"<style>a > b {{ color: red }}</style></head><body><!-- 5 Records, of 9 -->\n{_TRANSLATIONS}\n{body}</body></html>"
    )


def _card(product: ShopProduct, keyword: str, place: int) -> str:
    """Links carry the position that was clicked, so the same product has several URLs."""
    path = f"{product.path}?from=search&amp;k={quote_plus(keyword)}#c{place}" if place % 3 else product.path
    return f'<div class="card"><a target="_blank" href="{path}"><img alt=""/>{escape(product.name)}</a><a href="/cart">+</a></div>'


def _data(product: ShopProduct) -> str:
    return "{" + ",\n    ".join(_fields(product)) + ",}"


def _fields(product: ShopProduct) -> Iterator[str]:
    style = product.serial % 4  # pages on the site differ in how they write such objects
    yield f"id: {_text(product.id)}"
    name_key = ("nameEn", "productNameEn", "entryNameEn", "'nameEn'")[style]
    yield f"{name_key}: {_text(product.name, single=style == 1)}"
    if style == 0:
        yield f"sellPriceMin: {product.price_min}, sellPriceMax: {product.price_max}"
        yield f'weight: "{product.weight:.2f}", listedNum: {product.listed}'
    elif style == 1:
        yield f"sellPriceMin: '{product.price_min:.2f}', 'sellPriceMax': '{product.price_max:.2f}', supplier: undefined"
        yield f"productWeight: '{min(v.grams for v in product.variants):.2f}-{product.weight:.2f}', listedNum: '{product.listed}'"
    elif style == 2:
        yield f'sellPrice: "{product.price_min:.2f} -- {product.price_max:.2f}" /* a range }} */, rating: NaN, nameEn: undefined'
        yield f"packWeight: {product.weight}, listCount: {product.listed}"
    else:
        yield "// what it costs is with its variants: {\n    sellPrice: null"
        yield f"listedNum: {product.listed}"
        yield "tree: {a: [{b: '}]'},], c: {},}"
    images = [_text(url) for url in product.images]
    if style == 1:
        yield f"productImageSet: {_text(msgspec.json.encode(product.images).decode())}"
    else:
        yield f"bigImage: {images[0] if images else 'undefined'}, images: [{', '.join([*images, ''])}]"
    yield f"remark: {_text('<p>It said: window.productDetailData = {} </p></script>')}"
    rows = ",\n      ".join(_variant(variant, style) for variant in product.variants)
    yield f"variants: [{rows},]"


def _variant(variant: ShopVariant, style: int) -> str:
    price = str(variant.price) if style % 2 else _text(f"{variant.price:.2f}")
    grams = str(variant.grams) if style < 2 else _text(f"{variant.grams:.2f}")
    sku, name = "sku" if style < 2 else "variantSku", _text(variant.name, single=style == 2)
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
