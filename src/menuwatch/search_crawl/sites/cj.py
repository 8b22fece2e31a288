"""CJ Dropshipping: pages of results by keyword, 60 products each, and product pages that hold their data as a JavaScript object.

Every good page carries all texts of the site as translations, "captcha", "cloudflare" and "Product removed" among them, so words
prove nothing. The signs are: good pages have more than 50 kB; refusals have less than 5 kB and their own titles; a removed product
has an empty object."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import quote_plus, urljoin, urlsplit

from menuwatch.search_crawl.protocols import BlockPage, CrawledProduct, Found, Page, Unreadable, UrlType, Variant
from menuwatch.search_crawl.sites.parsing import BadLiteral, Html, parse_html, read_literal

HOME = "https://cjdropshipping.com"
PER_PAGE = 60
MOST_PAGES = 10
"""Maximum result pages per keyword."""
LARGEST_BODY = 5_000_000
GOOD_BYTES = 50_000
"""Good pages have more."""
BLOCK_BYTES = 5_000
"""Refusals have less."""

_REFUSALS = ("just a moment", "attention required", "access denied", "security check", "verify you are human")
"""How titles of refusals begin, in lower case."""
_VALIDATION = re.compile(
    r"""(?:\blocation(?:\.href)?\s?=|\blocation\.(?:replace|assign)\(|\burl=)\s?["']?[^"'\s<>;]{0,300}/validation\.html""",
    re.IGNORECASE,
)
_ID = r"([0-9]{1,30}|[0-9A-F]{8}(?:-[0-9A-F]{4}){3}-[0-9A-F]{12})"
_PRODUCT = re.compile(rf"/product/[^/]{{0,1500}}-p-{_ID}\.html")
_SEARCH = re.compile(r"/search/[^/]{1,1500}\.html")
_PAGE_NUMBER = re.compile(r"pageNum=([1-9][0-9]{0,4})")
_NUMBER = r"([0-9]{1,9}|[0-9]{1,3}(?:,[0-9]{3}){1,2})"
_COUNT = re.compile(_NUMBER)
_RECORDS = re.compile(rf"{_NUMBER}\+? Records?", re.IGNORECASE)
_RECORDS_AMONG = re.compile(rf"(?<![0-9.,]){_NUMBER}\+? Records?\b", re.IGNORECASE)
_OF_PAGES = re.compile(r"(?:(?:Page )?[0-9]{1,5} )?of ([0-9]{1,6})(?: pages?)?", re.IGNORECASE)
_SHORT = 60
"""Characters of a text that may say how many records there are among other words."""
_DATA = re.compile(
    r"""(?:^|[;,\n\r{}])[ \t]{0,50}(?:(?:var|let|const)\s|window\.|window\[["'])\s?"""
    r"""productDetailData(?:["']\])?\s{0,50}=\s{0,50}(?=[^=\s])"""
)
_STATE = re.compile(r"""["']productDetailData["']\s{0,50}:\s{0,50}(?=\{)""")
"""The same as a part of something larger; looked for where it is not assigned."""
_TRIES = 5
"""Places of a page that are tried for the object."""

_NAMES = ("nameEn", "productNameEn", "entryNameEn", "name", "productName", "entryName")
_VARIANTS = ("variants", "variantList", "stanProducts")
_VARIANT_IDS = ("vid", "variantId", "id", "sku", "variantSku")
_VARIANT_SKUS = ("sku", "variantSku")
_VARIANT_NAMES = ("nameEn", "variantNameEn", "variantKeyEn", "variantKey", "variantName", "name")
_VARIANT_PRICES = ("sellPrice", "variantSellPrice")
_VARIANT_WEIGHTS = ("packWeight", "weight", "variantWeight")
_PRICES = ("sellPrice", "nowPrice")
_WEIGHTS = ("packWeight", "packingWeight", "weight", "productWeight")
_LISTED = ("listedNum", "listCount", "listingCount")
_IMAGES = ("bigImage", "productImage", "imageUrl", "mainImage", "productImageSet", "images", "newImgList")

MOST_VARIANTS = 1000
MOST_IMAGES = 30
_LONGEST_NAME = 500
_LONGEST_ID = 100
_LONGEST_URL = 1000
_LARGEST = Decimal(10_000_000)
"""Dollars or grams beyond which a figure is a mistake."""
_MOST_LISTED = 2_000_000_000
_PLACES = Decimal("0.0001")
_AMOUNT = r"([0-9]{1,9}(?:\.[0-9]{0,12})?|[0-9]{1,3}(?:,[0-9]{3}){1,2}(?:\.[0-9]{0,12})?)"
_RANGE = re.compile(
    rf"(?:US)?\$?\s?{_AMOUNT}\s?(?:USD|g)?(?:\s?(?:-{{1,2}}|~|–|—)\s?(?:US)?\$?\s?{_AMOUNT}\s?(?:USD|g)?)?", re.ASCII
)
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]+")


class CJDropshipping:
    """The site. `home` is its scheme and host."""

    name = "cj"

    def __init__(self, home: str = HOME) -> None:
        self._home = home.rstrip("/")
        host = urlsplit(self._home).netloc.lower()
        self.hosts = frozenset({host, f"www.{host}"})

    def search_url(self, keyword: str) -> str:
        """The address of the first page of results. The site knows no capitals."""
        return f"{self._home}/search/{quote_plus(' '.join(keyword.lower().split()))}.html"

    def product_url(self, product_id: str) -> str:
        """The one address of a product: names in addresses change, and the site leads on from here."""
        return f"{self._home}/product/-p-{product_id}.html"

    def read(self, url_type: UrlType, url: str, body: bytes) -> Page:
        """Parses the page. Raises BlockPage and Unreadable."""
        if len(body) > LARGEST_BODY:
            raise Unreadable(f"a page of {len(body)} bytes; more than {LARGEST_BODY} are not read")
        page = parse_html(body.decode("utf-8", "replace"))
        self._check(page, len(body))
        return self._product(page, url) if url_type is UrlType.PRODUCT else self._results(page, url)

    def _check(self, page: Html, size: int) -> None:
        """Raises BlockPage if this is not a page of the site."""
        title = _printable(page.title)[:80]
        if size < BLOCK_BYTES or (size < GOOD_BYTES and title.lower().startswith(_REFUSALS)):
            shown = f"titled {title}" if title else "without a title"
            raise BlockPage(f"a page of {size} bytes; valid ones have more than {GOOD_BYTES}; {shown}")
        leads = (page.canonical or "").endswith("/validation.html")
        if leads or (size < GOOD_BYTES and any(map(_VALIDATION.search, (page.markup, *page.scripts)))):
            raise BlockPage("challenge page (validation.html)")

    def _results(self, page: Html, url: str) -> Page:
        """Products, and the pages of results after the first."""
        address = urlsplit(url)
        if _SEARCH.fullmatch(address.path) is None:
            raise Unreadable("the address is none of a page of results")
        page_number = _PAGE_NUMBER.search(address.query)
        number = 1 if page_number is None else int(page_number[1])
        products = tuple(dict.fromkeys(self._products(page)))
        total, pages = _counts(page)
        if total is None and not products:
            raise Unreadable("no page of results: it names no number of records and leads to no product")
        if pages is None:
            pages = max(1, _last_page(page), -(-(total or 0) // PER_PAGE))
        if total and not products and number <= pages:
            raise Unreadable(f"page {number} of {pages} of {total} records leads to no product")
        first = f"{self._home}{address.path}"
        more = (n for n in range(2, min(pages, MOST_PAGES) + 1) if n != number)
        return Page(
            found=(
                *(Found(url=f"{first}?pageNum={n}", url_type=UrlType.PAGINATION, page=n) for n in more),
                *(Found(url=self.product_url(product), url_type=UrlType.PRODUCT) for product in products),
            ),
            total=total,
        )

    def _products(self, page: Html) -> Iterator[str]:
        """Ids of the products that it leads to, in order."""
        for link in page.links():
            if (product_id := self._product_id(link)) is not None:
                yield product_id

    def _product_id(self, link: str) -> str | None:
        if "/product/" not in link:
            return None
        try:
            parts = urlsplit(urljoin(f"{self._home}/", link))
        except ValueError:
            return None
        match = _PRODUCT.fullmatch(parts.path)
        if match is None or parts.scheme not in ("http", "https") or parts.netloc.lower() not in self.hosts:
            return None
        return match[1]

    def _product(self, page: Html, url: str) -> Page:
        product_id = self._product_id(url)
        if product_id is None:
            raise Unreadable("the URL is not that of a product")
        canonical = page.canonical
        canonical_id = None if canonical is None else self._product_id(canonical)
        if canonical_id not in (None, product_id):
            raise Unreadable(f"the page shows another product: requested {product_id}, received {canonical_id}")
        data = _data(page)
        if not data:
            return Page(removed=True)
        product_url = url if canonical is None or canonical_id is None else urljoin(f"{self._home}/", canonical)
        return Page(product=_parse_product(data, product_id, product_url))


def _counts(page: Html) -> tuple[int | None, int | None]:
    """Number of records and of pages, if the page states them. Product names (a "Set of 4") are inside links, which are skipped."""
    total = among = pages = before = None
    for text in page.texts():
        if (match := _RECORDS.fullmatch(text)) is not None:
            total = _whole(match[1]) if total is None else total
        elif before is not None and text in ("Records", "Record"):
            total = before if total is None else total
        elif (match := _OF_PAGES.fullmatch(text)) is not None:
            pages = int(match[1])
        elif among is None and len(text) <= _SHORT and (match := _RECORDS_AMONG.search(text)) is not None:
            among = _whole(match[1])
        before = _whole(text) if _COUNT.fullmatch(text) else None
    return total if total is not None else among, pages


def _whole(text: str) -> int:
    return int(text.replace(",", ""))


def _last_page(page: Html) -> int:
    """The highest page number that it links to, 0 without links."""
    matches = (_PAGE_NUMBER.search(link) for link in page.links() if "/search/" in link)
    return max((int(match[1]) for match in matches if match is not None), default=0)


def _data(page: Html) -> dict[str, Any]:
    """The object of a product page, empty for one that is no longer sold. Raises Unreadable."""
    problem = "the page contains no productDetailData"
    tries = 0
    for place in (_DATA, _STATE):
        for script in page.scripts:
            for match in place.finditer(script):
                tries += 1
                if tries > _TRIES:
                    raise Unreadable(problem)
                try:
                    value = read_literal(script, match.end())
                except BadLiteral as error:
                    problem = f"productDetailData cannot be read: {error}"
                    continue
                # A part of something larger may be empty because nothing was put in yet.
                if isinstance(value, dict) and (value or place is _DATA):
                    return value
                problem = "productDetailData is not an object" if place is _DATA else problem
    raise Unreadable(problem)


def _parse_product(data: Mapping[str, Any], product_id: str, url: str) -> CrawledProduct:
    """The product in a page's object; `product_id` and `url` come from its address. Prices in US dollars, weights in grams; of a range
    of weights the heavier end, since postage is paid for what is sent. Raises Unreadable if it has no name.

    The object was filled by several generations of their software: the same thing has several names, numbers are numbers or texts
    ("1350.00", "2.09 -- 7.46"), lists are lists or texts that hold JSON. Unusable values are left out.
    """
    name = _first_text(data, _NAMES, _LONGEST_NAME)
    if name is None:
        raise Unreadable(f"a product without a name: {', '.join(_NAMES)} are all empty")
    variants = tuple(_variants(data))
    low, high = _price_range(data, variants)
    weights = _first_amounts(data, _WEIGHTS) or [v.weight_g for v in variants if v.weight_g is not None]
    return CrawledProduct(
        site_product_id=product_id,
        name=name,
        url=url,
        price_min=low,
        price_max=high,
        currency="USD",
        weight_g=max(weights, default=None),
        listed=_listed(data),
        variants=variants,
        images=tuple(_images(data)),
    )


def _price_range(data: Mapping[str, Any], variants: Iterable[Variant]) -> tuple[Decimal | None, Decimal | None]:
    """The product's stated price range; else the range of its variants."""
    stated = [*_amounts(data.get("sellPriceMin")), *_amounts(data.get("sellPriceMax"))]
    prices = stated or _first_amounts(data, _PRICES) or [v.price for v in variants if v.price is not None]
    return min(prices, default=None), max(prices, default=None)


def _variants(data: Mapping[str, Any]) -> Iterator[Variant]:
    seen: set[str] = set()
    rows = next((rows for key in _VARIANTS if isinstance(rows := data.get(key), list) and rows), [])
    for row in rows[:MOST_VARIANTS]:
        if not isinstance(row, dict):
            continue
        variant_id = _first_text(row, _VARIANT_IDS, _LONGEST_ID)
        if variant_id is None or variant_id in seen:
            continue
        seen.add(variant_id)
        yield Variant(
            variant_id=variant_id,
            sku=_first_text(row, _VARIANT_SKUS, _LONGEST_ID),
            name=_first_text(row, _VARIANT_NAMES, _LONGEST_NAME),
            price=min(_first_amounts(row, _VARIANT_PRICES), default=None),
            weight_g=max(_first_amounts(row, _VARIANT_WEIGHTS), default=None),
        )


def _listed(data: Mapping[str, Any]) -> int | None:
    for key in _LISTED:
        value = data.get(key)
        if isinstance(value, str) and re.fullmatch(r"[0-9]{1,10}", value.strip(), re.ASCII):
            value = int(value)
        if isinstance(value, Decimal) and abs(value) <= _MOST_LISTED and value == value.to_integral_value():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_LISTED:
            return value
    return None


def _images(data: Mapping[str, Any]) -> Iterator[str]:
    seen: set[str] = set()
    for key in _IMAGES:
        for address in _addresses(data.get(key)):
            if address not in seen and len(seen) < MOST_IMAGES:
                seen.add(address)
                yield address


def _addresses(value: Any) -> Iterator[str]:
    """The URLs of images in a text, a list of texts, or a text that holds such a list as JSON."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = read_literal(value)
        except BadLiteral:
            return
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str) and (address := _address(item.strip())) is not None:
            yield address


def _address(text: str) -> str | None:
    if text.startswith("//"):
        text = f"https:{text}"
    if len(text) > _LONGEST_URL or not text.isprintable() or any(c in text for c in " <>\"'\\"):
        return None
    try:
        parts = urlsplit(text)
        host = parts.hostname
    except ValueError:
        return None
    return text if parts.scheme in ("http", "https") and host and "@" not in parts.netloc else None


def _first_text(data: Mapping[str, Any], keys: Iterable[str], longest: int) -> str | None:
    """The first non-empty value, on one line. Identifiers may be written as numbers."""
    for key in keys:
        value = data.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if isinstance(value, str):
            # Names in Chinese come as a list in a text: what a person could read is elsewhere, or nowhere.
            plain = _printable(value[: 10 * longest])
            if plain and not plain.startswith('["'):
                return plain[:longest].rstrip()
    return None


def _printable(text: str) -> str:
    """The text on one line, without control and direction characters."""
    return " ".join(_UNPRINTABLE.sub(" ", text).split())


def _first_amounts(data: Mapping[str, Any], keys: Iterable[str]) -> list[Decimal]:
    return next((amounts for key in keys if (amounts := _amounts(data.get(key)))), [])


def _amounts(value: Any) -> list[Decimal]:
    """One or two amounts above zero in a value; empty if it is something else."""
    if isinstance(value, str):
        match = _RANGE.fullmatch(value[:100].strip())
        amounts = [] if match is None else [Decimal(part.replace(",", "")) for part in match.groups() if part]
    elif isinstance(value, int | Decimal) and not isinstance(value, bool):
        # Compared before it is made a Decimal: an int of 400 digits is cheap to compare only.
        amounts = [Decimal(value)] if 0 < value <= _LARGEST else []
    else:
        return []
    return [rounded for amount in amounts if 0 < (rounded := _rounded(amount)) <= _LARGEST]


def _rounded(amount: Decimal) -> Decimal:
    """To four places, if it is written with more."""
    exponent = amount.as_tuple().exponent
    assert isinstance(exponent, int), "an amount is finite"
    return amount.quantize(_PLACES) if exponent < -4 else amount
