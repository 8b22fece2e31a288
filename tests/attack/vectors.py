"""Values that break what does not expect them, and the page parser that tells whether one of them became markup."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from random import Random
from urllib.parse import quote, quote_from_bytes

MARK = "zqx"
"""In the name of every element and attribute that the vectors try to make: no page of ours has such a name."""

MARKUP = (
    f"<{MARK}>", f"</title></textarea></style></script><{MARK} on{MARK}=1>", f'"><{MARK} a="', f"'><{MARK} a='",
    f'" on{MARK}="1', f"' on{MARK}='1", f" on{MARK}=1 ", f"--><{MARK}>", f"]]><{MARK}/>", f"javascript:{MARK}()",
    f"JaVa\tScript:{MARK}()", f"data:text/html,<{MARK}>", f"{{{{7*7}}}}<{MARK}>", f"\\u003c{MARK}\\u003e", f"&lt;{MARK}&gt;",
    f"<svg/onload={MARK}()>", f"<img src=x on{MARK}=1>",
)  # fmt: skip
VALUES: tuple[str | bytes, ...] = (
    *MARKUP,
    "", " ", "\0", "a\0b", "\x1b]0;pwned\x07\x1b[2J", "a\rb\nc", "\u202edesrever", "\ufeff", "\ufffe", "e\u0301" * 50, "😀" * 300,
    "İ" * 100, "ß", "\u2028", "x" * 5000, "x" * 100_000, "9" * 5000, "\ud800", b"\xff\xfe", b"\xc0\x80", b"%zz%",
    "-1", "0", "1", "-0", "1.5", "2147483648", "9223372036854775808", "1e999999999", "NaN", "Infinity", "0x10", "1_000", "٣", "true",
    "null", "[]", "{}", '{"a":' * 500, "on", "' OR 1=1--", "'; DROP TABLE users--", "%' AND 1=(SELECT 1/0)--", "\\", "%", "_",
    "$1", "%s", "{0}", "(((((", ".*" * 50, "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-02-30", "-1d", "99999999d",
    "../../etc/passwd", "//evil.invalid/", "/\\evil.invalid", "https://evil.invalid/", "/\t/evil.invalid", "http://127.0.0.1:9/",
    "http://[v1.x]/", "http://①②⑦.⓪.⓪.①/", "a" * 64 + ".invalid", "00000", "99999", "ZZ", "payload_fetch", "admin",
)  # fmt: skip

_ADDRESSES = frozenset(
    {"href", "src", "action", "formaction", "srcset", "poster", "data", "xlink:href", "hx-get", "hx-post"}
)
_SCRIPT = re.compile(r"[\s\x00-\x1f]+")


def encoded(value: str | bytes) -> str:
    """As it goes into a form or a query; a lone surrogate goes as the bytes that it would have."""
    return quote_from_bytes(value) if isinstance(value, bytes) else quote(value.encode("utf-8", "surrogatepass"))


def form(fields: Sequence[tuple[str, str | bytes]]) -> bytes:
    return "&".join(f"{encoded(name)}={encoded(value)}" for name, value in fields).encode()


def mutated(chance: Random, names: Sequence[str], usual: dict[str, str]) -> list[tuple[str, str | bytes]]:
    """Fields as they would be sent, some of them replaced, left out or sent twice."""
    fields: list[tuple[str, str | bytes]] = []
    for name in names:
        if name in usual and chance.random() < 0.45:
            fields.append((name, usual[name]))
        elif chance.random() < 0.9:
            fields.append((name, chance.choice(VALUES)))
    if fields and chance.random() < 0.15:
        fields.append((chance.choice(fields)[0], chance.choice(VALUES)))
    if not fields or chance.random() < 0.1:
        fields.append((str(chance.choice(MARKUP)), chance.choice(VALUES)))
    return fields


@dataclass
class _Form:
    method: str
    action: str
    fields: dict[str, str] = field(default_factory=dict)


class Page(HTMLParser):
    """What is on a page: its forms, its links, and what of it came out of a vector."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.forms: list[_Form] = []
        self.links: list[str] = []
        self.injected: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if MARK in tag or any(MARK in name for name in found):
            self.injected.append(self.get_starttag_text() or tag)
        for name in _ADDRESSES & found.keys():
            if _SCRIPT.sub("", found[name]).lower().startswith((f"javascript:{MARK}", f"data:text/html,<{MARK}")):
                self.injected.append(f"{name}={found[name]}")
        if any(name.startswith("on") and MARK in value for name, value in found.items()):
            self.injected.append(self.get_starttag_text() or tag)
        if tag == "form":
            self.forms.append(_Form(found.get("method", "get").upper(), found.get("action", "")))
        elif tag in ("input", "select", "textarea", "button") and "name" in found and self.forms:
            self.forms[-1].fields.setdefault(found["name"], found.get("value", ""))
        elif tag == "option" and "value" in found and self.forms and self.forms[-1].fields:
            last = list(self.forms[-1].fields)[-1]
            self.forms[-1].fields[last] = self.forms[-1].fields[last] or found["value"]
        elif tag == "a" and "href" in found:
            self.links.append(found["href"])
