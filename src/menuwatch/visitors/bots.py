"""Programs that say who they are, and those that forget to look like a browser.

Counting people is all this is for: nobody is kept out by it, so it may be simple. A program that takes pains to look like a browser
is counted as one; whoever wants to keep such out has to look at more than headers.
"""

from __future__ import annotations

import functools
import re

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
