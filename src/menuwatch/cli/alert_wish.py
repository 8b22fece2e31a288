"""An alert rule as it is wished for on the command line."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from menuwatch.core.errors import Refused


class Condition(StrEnum):
    """What a rule waits for."""

    BELOW = "price_below"
    DROPS = "price_drops_by"
    BACK = "back_in_stock"
    OUT = "out_of_stock"
    NEW = "new_product"
    CIRCUIT = "circuit_opened"
    PROXIES = "proxies_down"


class Price(StrEnum):
    """Which price a rule looks at."""

    EFFECTIVE = "effective"
    REC = "rec"
    SPECIAL = "special"
    MED = "med"
    MED_SPECIAL = "med_special"


class Existing(StrEnum):
    """What becomes of products for which a new rule holds already."""

    SKIP = "skip"
    FIRE = "fire"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a rule may be made of, each part None where it was not given."""

    amount: Annotated[str | None, typer.Option("--amount", help="The price to be below, or the size of a drop.")] = None
    percent: Annotated[str | None, typer.Option("--percent", help="The size of a drop, in percent.")] = None
    product_id: Annotated[int | None, typer.Option("--product", help="Only this product, by number.")] = None
    store: Annotated[str | None, typer.Option("--store", help="Only this store: slug, platform id or number.")] = None
    brand: Annotated[str | None, typer.Option("--brand", help="Only this brand.")] = None
    category: Annotated[str | None, typer.Option("--category", help="Only this category.")] = None
    search: Annotated[str | None, typer.Option("--search", help="Only names that contain this.")] = None
    state: Annotated[str | None, typer.Option("--state", help="Only stores of this state.")] = None
    platform: Annotated[str | None, typer.Option("--platform", help="Only stores of this platform.")] = None
    option: Annotated[str | None, typer.Option("--option", help="The size or package; else the cheapest.")] = None
    price: Annotated[Price | None, typer.Option("--price", help="Which price.")] = None
    hysteresis: Annotated[
        str | None, typer.Option("--hysteresis", help="Percent above the threshold to arm again.")
    ] = None
    debounce_crawls: Annotated[
        int | None, typer.Option("--debounce-crawls", help="Crawls in a row that must find it so.")
    ] = None
    debounce_minutes: Annotated[
        int | None, typer.Option("--debounce-minutes", help="For how long it must have been so.")
    ] = None
    cooldown_minutes: Annotated[
        int | None, typer.Option("--cooldown-minutes", help="Between two alerts about a product.")
    ] = None
    digest: Annotated[
        str | None, typer.Option("--digest", help="`immediately`, `hourly`, or a time of day as 08:00 for once a day.")
    ] = None
    timezone: Annotated[str | None, typer.Option("--timezone", help="Time zone of a daily digest.")] = None
    on_existing: Annotated[
        Existing | None, typer.Option("--on-existing", help="What of products that match already.")
    ] = None
    webhook: Annotated[list[str] | None, typer.Option("--webhook", help="Address that gets signed messages.")] = None
    secret_file: Annotated[
        str | None, typer.Option("--secret-file", help="File with the secret of the webhooks; - reads standard input.")
    ] = None
    notify: Annotated[list[str] | None, typer.Option("--notify", help="Notification URL, as ntfy://topic.")] = None

    def asked(self) -> dict[str, Any]:
        """What was given, as operations take it. Raises Refused for what cannot be read."""
        wish: dict[str, Any] = {name: found for name in _PLAIN if (found := getattr(self, name)) is not None}
        wish |= {name: str(found) for name in _WORDS if (found := getattr(self, name)) is not None}
        for option, name in _NUMBERS.items():
            if (text := getattr(self, option)) is not None:
                wish[name] = _number(text, f"--{option}")
        if self.digest is not None:
            daily = self.digest not in ("immediately", "hourly")
            wish |= {"digest": "daily" if daily else self.digest, "digest_at": self.digest if daily else None}
        if self.webhook or self.notify:
            secret = _secret(self.secret_file)
            wish["channels"] = [{"kind": "webhook", "url": url, "secret": secret} for url in self.webhook or ()]
            wish["channels"] += [{"kind": "apprise", "url": url} for url in self.notify or ()]
        elif self.secret_file is not None:
            raise Refused("--secret-file is the secret of a webhook: give its address with --webhook")
        return wish


_PLAIN = (
    "product_id", "store", "brand", "category", "search", "state", "platform", "option", "debounce_crawls", "debounce_minutes",
    "cooldown_minutes", "timezone",
)  # fmt: skip
_WORDS = ("price", "on_existing")
_NUMBERS = {"amount": "amount", "percent": "percent", "hysteresis": "hysteresis_percent"}

OPTIONS = {
    "product_id": "--product", "store_id": "--store", "brand": "--brand", "category": "--category", "search": "--search",
    "state": "--state", "platform": "--platform", "amount": "--amount", "percent": "--percent", "option": "--option",
    "price": "--price", "hysteresis_percent": "--hysteresis", "debounce_crawls": "--debounce-crawls",
    "debounce_minutes": "--debounce-minutes", "cooldown_minutes": "--cooldown-minutes", "digest_at": "--digest",
    "timezone": "--timezone", "on_existing": "--on-existing",
}  # fmt: skip
"""By which option what is refused was given."""


def _number(text: str | None, option: str) -> Decimal | None:
    if text is None:
        return None
    try:
        return Decimal(text)
    except InvalidOperation:
        raise Refused(f"{option} {text!r} is no number: write it as 24.95") from None


def _secret(source: str | None) -> str | None:
    if source is None:
        return None
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"the secret cannot be read from {source}: {error}") from None
    return text.strip()
