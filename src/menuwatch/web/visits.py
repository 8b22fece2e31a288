"""Counts views of pages by people, beside the answer: a page is neither slower for it, nor can it break."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from menuwatch.core.logging import get_logger
from menuwatch.visitors.anonymous_marks import LONGEST_AGENT, NAMED, Kind, Visit, named
from menuwatch.web.client import Network, client_address
from menuwatch.web.visit_log import VisitLog

log = get_logger(__name__)

_KINDS = {
    "": Kind.HOME,
    "search": Kind.SEARCH,
    "stores": Kind.SEARCH,
    "deals": Kind.SEARCH,
    "p": Kind.PRODUCT,
    "s": Kind.STORE,
    "b": Kind.BRAND,
}
"""Kind of page by the first segment of the path."""


class CountVisits:
    """ASGI middleware, around everything of a face that changes the method (Head): a HEAD is no view."""

    def __init__(self, app: ASGIApp, log: VisitLog, trusted: Sequence[Network] = ()) -> None:
        """`trusted`: proxies in front of us whose X-Forwarded-For is believed."""
        self._app = app
        self._log = log
        self._trusted = trusted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        shown = False

        async def sending(message: Message) -> None:
            nonlocal shown
            if message["type"] == "http.response.start":
                shown = _is_page(message)
            await send(message)

        await self._app(scope, receive, sending)
        if shown:
            try:
                self._count(scope)
            except Exception:
                log.exception("visit could not be counted", action="visits_lost", count=1)

    def _count(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        why_not = reason(headers)
        if why_not is None and (address := client_address(scope, self._trusted)) is not None:
            kind, page = page_of(scope["path"], scope.get("root_path", ""))
            self._log.offer(
                Visit(
                    at=self._log.clock.now(),
                    kind=kind,
                    page=named(page),
                    address=address,
                    agent=headers.get("user-agent", "")[:LONGEST_AGENT],
                )
            )
        else:
            self._log.note(why_not or "no address")


def reason(headers: Headers) -> str | None:
    """Why a page requested with these headers is not counted; None if it is."""
    if headers.get("dnt") == "1" or headers.get("sec-gpc") == "1":
        return "objected"
    if _ahead(headers):
        return "prefetch"
    agent = headers.get("user-agent", "")
    # Every browser names the languages of its user and asks for a page as HTML; most programs do neither.
    if is_bot(agent) or not headers.get("accept-language") or "text/html" not in headers.get("accept", ""):
        return "bot"
    # A page that mends itself, or one within another, is no other view. Old browsers do not say.
    if headers.get("sec-fetch-dest", "document") != "document" or "x-fragment" in headers or "hx-request" in headers:
        return "part"
    return None


def _ahead(headers: Headers) -> bool:
    """Whether the browser prefetches a page that may never be viewed."""
    said = " ".join(headers.get(name, "") for name in ("sec-purpose", "purpose", "x-purpose", "x-moz")).lower()
    return any(word in said for word in ("prefetch", "prerender", "preview"))


def page_of(path: str, root: str = "") -> tuple[Kind, str]:
    """The kind of page at an address, and which of its kind. A list of stores or of deals is a search."""
    below = path[len(root) :] if root and path.startswith(root) else path
    first, _, rest = below.strip("/").partition("/")
    kind = _KINDS.get(first, Kind.OTHER)
    return kind, rest if kind in NAMED else ""


def _is_page(start: Message) -> bool:
    """Whether the response is a page; a 304 has no content type, but the request asked for a page."""
    if start["status"] == 304:
        return True
    kinds = [value for name, value in start.get("headers", ()) if name.lower() == b"content-type"]
    return start["status"] == 200 and any(value.lower().startswith(b"text/html") for value in kinds)


BROWSERS = ("Mozilla/", "Opera/")
"""How the user agent of every browser in use begins; libraries and tools (curl, Python, Go, Java, feed readers) begin otherwise."""

PATTERNS: tuple[tuple[str, str], ...] = (
    (r"(?<!cu)bots?\b", "Googlebot, bingbot, GPTBot, AdsBot-Google, UptimeRobot…; not the phones of the brand CUBOT"),
    (r"robot|spider|crawl|slurp|scrap(?:er|y|ing)|archiver|fetcher|harvest", "what such programs call what they do"),
    (r"\+?https?://|www\.", "browsers carry no address; programs name the page on which they explain themselves"),
    (r"@[\w-]+\.\w", "…or an e-mail address to complain to"),
    (r"headless|phantomjs|puppeteer|playwright|selenium|electron-?fetch|cypress", "browsers that no person looks at"),
    (r"lighthouse|pagespeed|ptst/|gtmetrix|pingdom|statuscake|site24x7|uptime|monitor|checkly|catchpoint", "measure and watch sites"),
    (r"preview|externalhit|facebookcatalog|embedly|vkshare|whatsapp/|skypeuripreview", "make the little pictures of shared links"),
    (r"mediapartners|google-inspectiontool|googleother|google-extended|feedfetcher|read-aloud|google web preview", "Google's own"),
    (r"chatgpt|perplexity|cohere-|bytespider|ccbot|meta-external|diffbot", "gather for language models"),
    (r"\b(?:python|java|curl|wget|libwww|okhttp|axios|node-fetch|go-http|\w*httpclient|perl|ruby)\b", "libraries behind a mask"),
    (r"validator|linkcheck|nikto|nmap|zgrab|masscan|nuclei|sqlmap|qualys|censys|expanse", "look for faults"),
)  # fmt: skip
"""(pattern, what it finds), matched anywhere and in any case."""

_ANY = re.compile("|".join(f"(?:{pattern})" for pattern, _ in PATTERNS), re.IGNORECASE)


@functools.lru_cache(maxsize=2048)
def is_bot(agent: str) -> bool:
    """Whether this user agent is a program's rather than a person's browser; an empty one is."""
    return not agent.startswith(BROWSERS) or _ANY.search(agent) is not None
