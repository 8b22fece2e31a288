"""Options of `menuwatch alerts add` and `edit`."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer

from menuwatch.alerts.model import Price
from menuwatch.alerts.validate import near_values
from menuwatch.cli.options import StoreOption
from menuwatch.core.errors import InvalidField, Refused
from menuwatch.geo.circle import DEFAULT_MILES, FARTHEST_MILES, PLACE_FORMS

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOptions:
    """Options of a rule, None if omitted."""

    amount: Annotated[
        str | None,
        typer.Option("--amount", help="Price threshold, size of the drop, or limit of an operations rule."),
    ] = None
    percent: Annotated[
        str | None, typer.Option("--percent", help="Size of the price drop, or failure rate, in percent.")
    ] = None
    product_id: Annotated[int | None, typer.Option("--product", help="Only this product, by id.")] = None
    canonical_product_id: Annotated[
        int | None, typer.Option("--canonical-product", help="Only listings of this canonical product, by id.")
    ] = None
    store: StoreOption = None
    brand: Annotated[str | None, typer.Option("--brand", help="Only this brand.")] = None
    category: Annotated[str | None, typer.Option("--category", help="Only this category.")] = None
    search: Annotated[str | None, typer.Option("--search", help="Only products whose name contains this text.")] = None
    state: Annotated[str | None, typer.Option("--state", help="Only stores in this state.")] = None
    platform: Annotated[str | None, typer.Option("--platform", help="Only stores on this platform.")] = None
    near: Annotated[
        str | None, typer.Option("--near", help=f"Only stores near this place: {PLACE_FORMS}.", metavar="PLACE")
    ] = None
    latitude: Annotated[float | None, typer.Option("--latitude", help="Only stores within --miles of this place.")] = (
        None
    )
    longitude: Annotated[
        float | None, typer.Option("--longitude", help="Only stores within --miles of this place.")
    ] = None
    miles: Annotated[
        float | None,
        typer.Option(
            "--miles",
            help=f"Distance from the place, at most {FARTHEST_MILES}; {DEFAULT_MILES} by default with --near.",
        ),
    ] = None
    option: Annotated[
        str | None, typer.Option("--option", help="Size or package to compare; default: the cheapest one.")
    ] = None
    price: Annotated[Price | None, typer.Option("--price", help="Price to compare.")] = None
    hysteresis_percent: Annotated[
        str | None,
        typer.Option(
            "--hysteresis",
            help="How far above the threshold a price must rise before the rule can fire again, in percent.",
        ),
    ] = None
    debounce_crawls: Annotated[
        int | None, typer.Option("--debounce-crawls", help="Consecutive crawls that must confirm the condition.")
    ] = None
    debounce_minutes: Annotated[
        int | None, typer.Option("--debounce-minutes", help="How long the condition must hold.")
    ] = None
    cooldown_minutes: Annotated[
        int | None, typer.Option("--cooldown-minutes", help="Minimum time between two alerts about one product.")
    ] = None
    digest: Annotated[
        str | None,
        typer.Option("--digest", help="`immediately`, `hourly`, or a time of day such as 08:00 for a daily digest."),
    ] = None
    timezone: Annotated[str | None, typer.Option("--timezone", help="Time zone of a daily digest.")] = None
    on_existing: Annotated[
        Literal["skip", "fire"] | None,
        typer.Option("--on-existing", help="Whether to fire for products that already match."),
    ] = None
    webhook: Annotated[list[str] | None, typer.Option("--webhook", help="URL that receives signed messages.")] = None
    secret_file: Annotated[
        str | None,
        typer.Option("--secret-file", help="File with the webhook secret; - reads standard input. Default: generated."),
    ] = None
    notify: Annotated[
        list[str] | None, typer.Option("--notify", help="Notification URL, for example ntfy://topic.")
    ] = None

    def values(self) -> dict[str, Any]:
        """The fields of the rule. Raises Refused for invalid options."""
        values = {name: getattr(self, name) for name in self.__slots__}
        webhooks, secret_file, notify = (values.pop(name) for name in ("webhook", "secret_file", "notify"))
        values = {name: value for name, value in values.items() if value is not None}
        for name in ("amount", "percent", "hysteresis_percent"):
            if name in values:
                values[name] = _parse_number(values[name], _OPTIONS[name])
        if (near := values.pop("near", None)) is not None:
            if self.latitude is not None or self.longitude is not None:
                raise Refused("--near is another way to give --latitude and --longitude: give one of them")
            try:
                values |= near_values(near, self.miles)
            except Refused as error:
                raise Refused(f"--near: {error}") from None
        if self.digest is not None:
            daily = self.digest not in ("immediately", "hourly")
            values |= {"digest": "daily" if daily else self.digest, "digest_at": self.digest if daily else None}
        if webhooks or notify:
            secret = None if secret_file is None else _read_secret(secret_file)
            values["channels"] = [{"kind": "webhook", "url": url, "secret": secret} for url in webhooks or ()]
            values["channels"] += [{"kind": "apprise", "url": url} for url in notify or ()]
        elif secret_file is not None:
            raise Refused("--secret-file needs a webhook: add --webhook")
        return values


_OPTIONS = {
    "product_id": "--product", "canonical_product_id": "--canonical-product", "store_id": "--store",
    "hysteresis_percent": "--hysteresis", "digest_at": "--digest",
} | {
    name: f"--{name.replace('_', '-')}"
    for name in (
        "brand", "category", "search", "state", "platform", "latitude", "longitude", "miles",
        "amount", "percent", "option", "price", "debounce_crawls",
        "debounce_minutes", "cooldown_minutes", "timezone", "on_existing",
    )
}  # fmt: skip
"""Option names by field, for errors."""


def _parse_number(text: str, option: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise Refused(f"{option} {text!r} is not a number such as 24.95") from None


def _read_secret(source: str) -> str:
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"the secret cannot be read from {source}: {error}") from None
    return text.strip()


async def name_option(values: Mapping[str, Any], act: Awaitable[T]) -> T:
    """Names the options of invalid fields."""
    try:
        return await act
    except InvalidField as error:
        lines = []
        for one in error.errors:
            known = {"store_id": "store"}.get(one.field, one.field) in values and one.field in _OPTIONS
            lines.append(f"{_OPTIONS[one.field]}: {one}" if known else str(one))
        raise Refused("; ".join(lines)) from None
