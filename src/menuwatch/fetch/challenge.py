"""Whether an answer is a page that wants a browser to prove itself. Pure.

The same services put their scripts into every page of a site in good health, so a mark means something only where a refusal or
data was due, and some marks only beside a refusal or in a page that asks not to be indexed, which pages that sell never do.

Sources: research/crawl.md section 7; Cloudflare's `cf-mitigated`; AWS WAF's `x-amzn-waf-action`; DataDome's `x-datadome` and
`x-dd-b`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from menuwatch.core.http import Expect

_REFUSALS = frozenset({401, 403, 405, 429, 503})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})

_PLAIN = re.compile(
    rb"just a moment\.\.\."
    rb"|/cdn-cgi/challenge-platform/(?!scripts/jsd)"  # scripts/jsd is on pages that were let through
    rb"|cf-challenge|cf_chl_opt"
    rb"|captcha-delivery\.com"
    rb"|_incapsula_resource\?[^\"'>]*swudnsai|incapsula incident id"
    rb"|px-captcha|_pxcaptcha"
)
"""Found in challenge pages only."""
_USUAL = re.compile(
    rb"/cdn-cgi/challenge-platform|_incapsula_resource|(?<!\w)_px[a-z]+|g-recaptcha|h-captcha|hcaptcha\.com"
)
"""Found in challenge pages, and in others of the same site."""


def is_challenge(status: int, headers: Mapping[str, str], start: bytes, expect: Expect) -> bool:
    """`headers` have lower-case names; `start` is the beginning of the body."""
    if headers.get("cf-mitigated", "").lower() == "challenge":
        return True
    if headers.get("x-amzn-waf-action", "").lower() in ("challenge", "captcha"):
        return True
    # DataDome marks every answer of a site that it guards, and those that it gave itself by x-dd-b as well.
    if "x-dd-b" in headers or ("x-datadome" in headers and status in (403, 405)):
        return True
    if status in _REDIRECTS:
        to = headers.get("location", "").lower().encode("utf-8", "replace")
        return _PLAIN.search(to) is not None or _USUAL.search(to) is not None
    refused = status in _REFUSALS
    text = start.lower()
    if not refused and not (expect in ("json", "image") and text.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"<"):
        return False
    if _PLAIN.search(text):
        return True
    return _USUAL.search(text) is not None and (refused or b"noindex" in text)
