"""Pages of CJ Dropshipping's shape, written by hand after what is known of them."""

from __future__ import annotations

HOME = "https://cjdropshipping.com"
TRAPS = (
    "captcha", "Please complete the captcha", "Checked by cloudflare", "Product removed", "Just a moment", "100 Records", "of 99",
    "location.href = '/validation.html'", "window.productDetailData = {};",
)  # fmt: skip
_WORDS = ",".join(f"'t{n}':'{TRAPS[n % len(TRAPS)].replace(chr(39), chr(92) + chr(39))} ({n})'" for n in range(1700))
TRANSLATIONS = f"<script>window.i18n = {{{_WORDS}}};</script>"
assert len(TRANSLATIONS) > 50_000


def page(body: str, *, title: str = "CJ Dropshipping", head: str = "", filled: bool = True) -> bytes:
    words = TRANSLATIONS if filled else ""
    return (
        f"<!DOCTYPE html><html><head><title>{title}</title>{head}<!-- 7 Records of 3 --></head><body>{words}"
        f"{body}</body></html>"
    ).encode()


def product(literal: str, **more: str) -> bytes:
    return page(
        f"<svg><title>of 5</title></svg><script type='text/javascript'>\n  window.productDetailData = {literal};\n</script>",
        **more,
    )  # type: ignore[arg-type]


def card(product_id: str, slug: str = "some-thing", name: str = "Some thing") -> str:
    return f'<div class="card"><a target="_blank" href="/product/{slug}-p-{product_id}.html?from=search#top">{name}</a></div>'


def results(cards: str, count: str) -> bytes:
    return page(f'<div class="grid">{cards}</div><div class="pager">{count}</div>')
