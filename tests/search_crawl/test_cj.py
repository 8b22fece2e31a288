"""The site of CJ Dropshipping: what its pages say, and what is no page of it."""

from __future__ import annotations

import contextlib
import time
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from menuwatch.search_crawl.protocols import BlockPage, CrawledProduct, Found, Page, Unreadable, UrlType, Variant
from menuwatch.search_crawl.sites.cj import CJDropshipping
from tests.search_crawl.cj_pages import HOME, card, page, product, results

SITE = CJDropshipping()
SEARCH = f"{HOME}/search/led+lamp.html"
PRODUCT = f"{HOME}/product/-p-1595697832017801216.html"


def found_products(*ids: str) -> tuple[Found, ...]:
    return tuple(Found(url=f"{HOME}/product/-p-{one}.html", url_type=UrlType.PRODUCT) for one in ids)


def found_pages(*numbers: int) -> tuple[Found, ...]:
    return tuple(Found(url=f"{SEARCH}?pageNum={n}", url_type=UrlType.PAGINATION, page=n) for n in numbers)


@pytest.mark.parametrize(
    ("keyword", "path"),
    [
        ("LED  Lamp ", "led+lamp"),
        ("a/b?c#d", "a%2Fb%3Fc%23d"),
        ("größe", "gr%C3%B6%C3%9Fe"),
        ("50% off & more", "50%25+off+%26+more"),
    ],
)
def test_addresses_of_searches(keyword: str, path: str) -> None:
    assert SITE.search_url(keyword) == f"{HOME}/search/{path}.html"


def test_a_page_of_results_leads_to_products_and_to_the_other_pages() -> None:
    cards = (
        card("11")
        + card("22", name="Set of 9 Knives")
        + card("33", name="of 9")
        + card("44", name="99 Records")
        + card("11", slug="the-same-by-another-name")
        + card("04A22450-67F0-4617-A132-E7AE7F8963B0")
        + "<a href='https://www.cjdropshipping.com/product/-p-55.html'>x</a>"
        + '<a href="https://elsewhere.example/product/x-p-66.html">x</a><a href="http://[/product/x-p-77.html">x</a>'
        + '<a href="/product/x-p-88.html/more">x</a><a href="javascript:/product/x-p-99.html">x</a>'
    )
    wanted = found_products("11", "22", "33", "44", "04A22450-67F0-4617-A132-E7AE7F8963B0", "55")
    said = Page(found=(*found_pages(2, 3, 4), *wanted), total=219)
    for count in ("<b>219 Records</b> <i>1</i> <i>of 4</i>", "<b>219</b> Records<p>1 of&nbsp;4</p>", "219 Records"):
        assert SITE.read(UrlType.SEARCH, SEARCH, results(cards, count)) == said
    third = SITE.read(UrlType.PAGINATION, f"{SEARCH}?pageNum=3", results(cards, "<p>219 Records</p><p>of 4</p>"))
    assert third.found == (*found_pages(2, 4), *wanted)


def test_a_site_that_says_it_in_other_words_is_understood() -> None:
    for count in ("<p>Found 219 records for you</p>", "<p>219 Records</p><p>Page 1 of 4 pages</p>"):
        assert SITE.read(UrlType.SEARCH, SEARCH, results(card("1"), count)).found[:3] == found_pages(2, 3, 4)
    linked = '<a href="/search/led+lamp.html?pageNum=2">2</a><a href="/search/led+lamp.html?pageNum=3">>></a>'
    said = SITE.read(UrlType.SEARCH, SEARCH, results(card("1"), linked))
    assert said == Page(found=(*found_pages(2, 3), *found_products("1")), total=None)


def test_no_more_than_ten_pages_of_one_search() -> None:
    many = SITE.read(UrlType.SEARCH, SEARCH, results(card("1"), "<p>12,345 Records</p><p>of 206</p>"))
    assert many.found == (*found_pages(*range(2, 11)), *found_products("1"))
    assert many.total == 12_345


def test_a_search_without_results_is_an_answer() -> None:
    assert SITE.read(UrlType.SEARCH, SEARCH, results("", "<p>0 Records</p>")) == Page(total=0)
    beyond = results("", "<p>61 Records</p>")
    assert SITE.read(UrlType.PAGINATION, f"{SEARCH}?pageNum=3", beyond).found == found_pages(2)


FULL = r"""{
  // what the shop says of it
  'id': 1595697832017801216, pid: undefined, nameEn: "", productNameEn: 'Bath \u201cBucket\u201d \x26 Co. <\/script>{"x":1} ',
  entryNameEn: "not this", sellPriceMin: 2.09, sellPriceMax: "7.46", /* { */ weight: "1350.00", listedNum: '12',
  bigImage: "https://img.example/a.jpg", productImageSet: '["//img.example/b.jpg", "https://img.example/a.jpg", "ftp://x/c", 5]',
  nested: {a: [1, 2, {b: NaN,},],}, tpl: `two
lines`,
  variants: [
    {vid: "v1", variantSku: "CJ-1", sku: "CJ1", variantKey: "Red-L", sellPrice: 2.09, packWeight: "1,350.00", weight: 1200},
    {vid: 2, sku: "CJ2", nameEn: "Blue", sellPrice: "7.46", weight: 1360.5, packWeight: null},
    {vid: "v1", sku: "again"}, null, "x", {colour: "no id"}, {sku: "CJ3", sellPrice: -1, packWeight: "heavy"},
  ],
}"""


def test_a_product_is_read_whole() -> None:
    body = product(FULL, head=f'<link href="{HOME}/product/bath-bucket-p-1595697832017801216.html" rel="canonical">')
    assert SITE.read(UrlType.PRODUCT, PRODUCT, body) == Page(
        product=CrawledProduct(
            site_product_id="1595697832017801216",
            name='Bath “Bucket” & Co. </script>{"x":1}',
            url=f"{HOME}/product/bath-bucket-p-1595697832017801216.html",
            price_min=Decimal("2.09"),
            price_max=Decimal("7.46"),
            currency="USD",
            weight_g=Decimal("1350.00"),
            listed=12,
            variants=(
                Variant(variant_id="v1", sku="CJ1", name="Red-L", price=Decimal("2.09"), weight_g=Decimal("1350.00")),
                Variant(variant_id="2", sku="CJ2", name="Blue", price=Decimal("7.46"), weight_g=Decimal("1360.5")),
                Variant(variant_id="CJ3", sku="CJ3", name=None, price=None, weight_g=None),
            ),
            images=("https://img.example/a.jpg", "https://img.example/b.jpg"),
        )
    )


@pytest.mark.parametrize(
    ("literal", "low", "high"),
    [
        ("sellPrice: '2.09 -- 7.46'", "2.09", "7.46"),
        ("sellPrice: '$3.10-1.20'", "1.20", "3.10"),
        ("sellPriceMin: '1,234.50', sellPriceMax: 0", "1234.50", "1234.50"),
        ("sellPriceMin: '', sellPrice: 1e1", "1E+1", "1E+1"),
        ("variants: [{vid: 1, sellPrice: 5}, {vid: 2, variantSellPrice: '4.00'}, {vid: 3}]", "4.00", "5"),
        ("sellPrice: 3.123456789", "3.1235", "3.1235"),
        ("sellPriceMin: -3, sellPriceMax: NaN, sellPrice: '12e9 - x'", None, None),
        ("sellPriceMin: 99999999999, sellPrice: true", None, None),
        (f"sellPriceMin: 1{'0' * 398}", None, None),
        ("sellPriceMin: 1e300, sellPriceMax: 1e-300", None, None),
    ],
)
def test_prices(literal: str, low: str | None, high: str | None) -> None:
    said = SITE.read(UrlType.PRODUCT, PRODUCT, product(f"{{name: 'X', {literal}}}")).product
    assert said is not None
    assert (said.price_min, said.price_max) == (low and Decimal(low), high and Decimal(high))


@pytest.mark.parametrize(
    ("literal", "grams", "listed"),
    [
        ("weight: '10.00-50.00'", "50.00", None),
        ("productWeight: 320, listedNum: 7.0", "320", 7),
        ("packWeight: '12.5 g', weight: 1, listedNum: -1, listCount: '8'", "12.5", 8),
        ("variants: [{vid: 1, packWeight: '7'}, {vid: 2, packWeight: '9'}]", "9", None),
        ("weight: 'unknown', listedNum: 99999999999", None, None),
        ("weight: 0", None, None),
    ],
)
def test_weights_and_listings(literal: str, grams: str | None, listed: int | None) -> None:
    said = SITE.read(UrlType.PRODUCT, PRODUCT, product(f"{{name: 'X', {literal}}}")).product
    assert said is not None
    assert (said.weight_g, said.listed) == (grams and Decimal(grams), listed)


def test_a_product_that_is_gone() -> None:
    for nothing in ("{}", "{ /* gone */ }"):
        assert SITE.read(UrlType.PRODUCT, PRODUCT, product(nothing)) == Page(removed=True)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        page("<p>Checking</p>", title="Just a moment...", filled=False),
        page("<p>Sorry</p>" + " " * 20_000, title="Attention Required! | Cloudflare", filled=False),
        page("<script>location.href = 'https://cjdropshipping.com/validation.html?x=1'</script>" + " " * 9000, filled=False),
        page('<meta http-equiv=refresh content="0;url=/validation.html">' + " " * 9000, filled=False),
        page("", head='<link rel="canonical" href="https://cjdropshipping.com/validation.html">'),
    ],
)  # fmt: skip
@pytest.mark.parametrize("url_type", list(UrlType))
def test_refusals_are_told_by_title_and_size(body: bytes, url_type: UrlType) -> None:
    with pytest.raises(BlockPage):
        SITE.read(url_type, PRODUCT if url_type is UrlType.PRODUCT else SEARCH, body)


def test_a_refusal_says_how_it_is_called() -> None:
    with pytest.raises(
        BlockPage, match=r"^a page of \d+ bytes; valid ones have more than 50000; titled Just a moment\.\.\. x$"
    ):
        SITE.read(UrlType.PRODUCT, PRODUCT, page("", title="Just\n a moment... &#x202e;x\0", filled=False))


def test_a_good_page_may_have_any_name() -> None:
    said = SITE.read(UrlType.PRODUCT, PRODUCT, product("{nameEn: 'Cloudflare captcha'}", title="Just a moment watch"))
    assert said.product is not None
    assert said.product.name == "Cloudflare captcha"


@pytest.mark.parametrize(
    ("url_type", "url", "body", "why"),
    [
        (UrlType.PRODUCT, PRODUCT, page(""), "contains no productDetailData"),
        (UrlType.PRODUCT, PRODUCT, product("{name: f(1, {}"), "cannot be read"),
        (UrlType.PRODUCT, PRODUCT, product("null"), "is not an object"),
        (UrlType.PRODUCT, PRODUCT, product("{nameEn: null, name: '\\u0007 '}"), "without a name"),
        (UrlType.PRODUCT, PRODUCT, product(FULL, head=f'<link rel="canonical" href="{HOME}/product/x-p-5.html">'), "another product"),
        (UrlType.PRODUCT, SEARCH, product(FULL), "not that of a product"),
        (UrlType.SEARCH, SEARCH, page("<p>Welcome</p>"), "no number of records"),
        (UrlType.SEARCH, SEARCH, results("", "<p>219 Records</p>"), "leads to no product"),
        (UrlType.SEARCH, PRODUCT, results(card("1"), ""), "none of a page of results"),
        (UrlType.SEARCH, SEARCH, b" " * 5_000_001, "more than 5000000"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named(url_type: UrlType, url: str, body: bytes, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        SITE.read(url_type, url, body)


def test_of_several_objects_the_first_that_can_be_read_counts() -> None:
    body = page(
        """<script type="application/ld+json">{"name": "; window.productDetailData = {nameEn: 'Not me'};"}</script>
        <script>a = 1,window["productDetailData"] = load();</script>
        <script>if (window.productDetailData == {}) {}; window.productDetailData={nameEn:'Me'}</script>"""
    )
    said = SITE.read(UrlType.PRODUCT, PRODUCT, body).product
    assert said is not None
    assert said.name == "Me"


PIECES = [
    "<script>",
    "</script>",
    "window.productDetailData = ",
    FULL,
    "{",
    "}",
    "<a href='/product/x-p-1.html'>",
    "<title>",
    "<!--",
]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from([*PIECES, "219 Records", "of 4", "&#" + "9" * 5000 + ";", "<link rel=canonical href='", "\udcff"])),
    st.binary(),
    st.sampled_from(list(UrlType)),
)  # fmt: skip
def test_nothing_but_its_own_errors(pieces: list[str], noise: bytes, url_type: UrlType) -> None:
    middle = "".join(pieces).encode("utf-8", "surrogatepass")
    body = page("").replace(b"</body>", middle + noise)
    with contextlib.suppress(BlockPage, Unreadable):
        SITE.read(url_type, PRODUCT if url_type is UrlType.PRODUCT else SEARCH, body)


@pytest.mark.parametrize(
    "unit",
    [
        "<a ", "<a href=", '<a href="', "<link rel=canonical ", "<title ", "<script>", "<script ", "</script", "<!--", "<", "&#9",
        "<a href='/product/-p-", "<style>", "<svg><title>", "\nwindow.productDetailData={a:", "<p>1 Records of ",
    ],
)  # fmt: skip
@pytest.mark.parametrize("before", ["", "<script>"])
def test_time_grows_with_the_page_and_no_faster(before: str, unit: str) -> None:
    body = (before + unit * (1_000_000 // len(unit))).encode()
    for url_type, url in ((UrlType.PRODUCT, PRODUCT), (UrlType.SEARCH, SEARCH)):
        began = time.process_time()
        with pytest.raises((Unreadable, BlockPage)):
            SITE.read(url_type, url, body)
        assert time.process_time() - began < 3
