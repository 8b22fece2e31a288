"""CJ Dropshipping: pages of results by keyword, 60 products each, and product pages that hold their data as a JavaScript object.

Every good page carries all texts of the site as translations, "captcha", "cloudflare" and "Product removed" among them, so words say
nothing. What tells: good pages have more than 50 kB; refusals have less than 5 kB and their own titles; a product that is gone
has an empty object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote_plus, urljoin, urlsplit

from menuwatch.crawls.base import BlockPage, Found, Page, Unreadable, UrlType
from menuwatch.sites import cj_product, html
from menuwatch.sites.html import Html
from menuwatch.sites.literal import BadLiteral, read

HOME = "https://cjdropshipping.com"
PER_PAGE = 60
MOST_PAGES = 10
"""Pages of results that are looked at for one keyword."""
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
        """What the page says. Raises BlockPage and Unreadable."""
        if len(body) > LARGEST_BODY:
            raise Unreadable(f"a page of {len(body)} bytes; more than {LARGEST_BODY} are not read")
        page = html.parse(body.decode("utf-8", "replace"))
        self._check(page, len(body))
        return self._product(page, url) if url_type is UrlType.PRODUCT else self._results(page, url)

    def _check(self, page: Html, size: int) -> None:
        """Raises BlockPage where this is no page of the site."""
        title = cj_product.printable(page.title)[:80]
        if size < BLOCK_BYTES or (size < GOOD_BYTES and title.lower().startswith(_REFUSALS)):
            shown = f"titled {title}" if title else "without a title"
            raise BlockPage(f"a page of {size} bytes, where good ones have more than {GOOD_BYTES}, {shown}")
        leads = (page.canonical or "").endswith("/validation.html")
        if leads or (size < GOOD_BYTES and any(map(_VALIDATION.search, (page.markup, *page.scripts)))):
            raise BlockPage("the site wants the visitor checked: the page leads to validation.html")

    def _results(self, page: Html, url: str) -> Page:
        """Products, and the pages of results after the first."""
        address = urlsplit(url)
        if _SEARCH.fullmatch(address.path) is None:
            raise Unreadable("the address is none of a page of results")
        asked = _PAGE_NUMBER.search(address.query)
        number = 1 if asked is None else int(asked[1])
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
                *(Found(url=self.product_url(found), url_type=UrlType.PRODUCT) for found in products),
            ),
            total=total,
        )

    def _products(self, page: Html) -> Iterator[str]:
        """Ids of the products that it leads to, in order."""
        for link in page.links():
            if (found := self._product_id(link)) is not None:
                yield found

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
        asked = self._product_id(url)
        if asked is None:
            raise Unreadable("the address is none of a product")
        shown = page.canonical
        came = None if shown is None else self._product_id(shown)
        if came is not None and came != asked:
            raise Unreadable(f"the page is of another product: asked was for {asked}, and came has {came}")
        data = _data(page)
        if not data:
            return Page(removed=True)
        found_at = url if shown is None or came is None else urljoin(f"{self._home}/", shown)
        return Page(product=cj_product.product(data, asked, found_at))


def _counts(page: Html) -> tuple[int | None, int | None]:
    """How many records there are, and how many pages, where the page says so. Names of products (a "Set of 4") stand in links, and
    are not looked at."""
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
    """The highest number of a page of results that it leads to, 0 where it leads to none."""
    found = (_PAGE_NUMBER.search(link) for link in page.links() if "/search/" in link)
    return max((int(match[1]) for match in found if match is not None), default=0)


def _data(page: Html) -> dict[str, Any]:
    """The object of a product page, empty for one that is no longer sold. Raises Unreadable."""
    problem = "the page holds no productDetailData"
    tries = 0
    for place in (_DATA, _STATE):
        for script in page.scripts:
            for found in place.finditer(script):
                tries += 1
                if tries > _TRIES:
                    raise Unreadable(problem)
                try:
                    value, _ = read(script, found.end())
                except BadLiteral as error:
                    problem = f"productDetailData cannot be read: {error}"
                    continue
                # A part of something larger may be empty because nothing was put in yet.
                if isinstance(value, dict) and (value or place is _DATA):
                    return value
                problem = "productDetailData is no object" if place is _DATA else problem
    raise Unreadable(problem)
