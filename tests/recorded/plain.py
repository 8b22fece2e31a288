"""Reading recorded answers by hand: exact numbers, trimmed texts, text of HTML, money per unit. Shares no code with the product."""

from __future__ import annotations

import json
import re
import unicodedata
from decimal import Decimal
from fractions import Fraction
from html.parser import HTMLParser
from typing import Any

BLOCKS = {"p", "br", "div", "li", "ul", "ol", "tr", "h1", "h2", "h3", "h4", "h5", "h6"}


def read(body: bytes | str) -> Any:
    """JSON with every number exact."""
    return json.loads(body, parse_float=Decimal, parse_int=lambda text: int(text))


def trimmed(text: str) -> str:
    return unicodedata.normalize("NFC", re.sub(r"\s+", " ", text).strip())


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []

    def handle_data(self, data: str) -> None:
        self.found.append(data)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag in BLOCKS:
            self.found.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag in BLOCKS:
            self.found.append(" ")


def text_of(html: str) -> str | None:
    """What a browser would show, on one line; None where that says nothing."""
    parser = _Text()
    parser.feed(html)
    parser.close()
    text = trimmed("".join(parser.found))
    return text if any(c.isalnum() for c in text) else None


def each(price: Decimal | None, amount: Decimal | int | None) -> Decimal | None:
    """Money for one of `amount`, to 4 places."""
    if price is None or not amount:
        return None
    rounded = round(Fraction(price) / Fraction(amount), 4)
    return Decimal(rounded.numerator) / Decimal(rounded.denominator)


def least(values: list[Decimal | None]) -> Decimal | None:
    return min((value for value in values if value is not None), default=None)


def without_nothing(found: dict[str, Any]) -> dict[str, Any]:
    """Only what there is: no nulls, empty texts and lists, no false flags."""
    return {key: value for key, value in found.items() if value is not None and value != "" and value != []}
