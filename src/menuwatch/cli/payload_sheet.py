"""One archived answer, and what differs between two, as text for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from menuwatch.cli import output
from menuwatch.cli.output import plural
from menuwatch.payloads.store import Payload

_SHOWN = 10
_FIGURES = (
    ("new_products", "new"),
    ("changed", "changed"),
    ("unchanged", "unchanged"),
    ("returned", "returned"),
    ("missing", "missing"),
)


def lines(payload: Payload, usage: dict[str, Any]) -> list[str]:
    """What is known of a payload; `usage` is what `operations.payloads.usage` says."""
    store = usage["store"]
    of = "" if payload.total_count is None else f" of {payload.total_count:,} that the platform names"
    facts = [
        ("Store", f"{payload.dispensary_id} ({store['name'] if store else 'gone'})"),
        ("Platform", payload.platform),
        ("Fetched", _time(payload.fetched_at) + (", the store's first" if payload.is_first else "")),
        ("By task", payload.task_id),
        ("Products", f"{payload.product_count:,}{of}, in {plural(payload.page_count, 'page')}"),
        ("Released", None if payload.released_at is None else _time(payload.released_at)),
        ("Notes", "; ".join(payload.notes) or None),
        ("Used", _used(payload, usage["crawl"])),
        ("File", payload.path),
        ("Size", f"{payload.bytes:,} bytes, {payload.raw_bytes:,} unpacked"),
        ("SHA-256", payload.sha256),
        ("Same file", _numbers(usage["same_file"])),
        ("Same menu", _numbers(usage["same_answers"])),
    ]
    head = f"Payload {payload.id}: {payload.status}" + (f", {payload.reason}" if payload.reason else "")
    return [head, "", *(f"{name:<10}{value}" for name, value in facts if value is not None)]


def _time(value: Any) -> str:
    return f"{output.shown(value)} UTC"


def _used(payload: Payload, crawl: dict[str, Any] | None) -> str:
    if crawl is None:
        return "not in the catalogue"
    figures = [f"{crawl[key]:,} {word}" for key, word in _FIGURES if crawl[key]]
    when = f", taken in {_time(payload.applied_at)}" if payload.applied_at else ""
    return f"the crawl of {_time(crawl['crawled_at'])}{when}: {', '.join(figures) or 'no product'}"


def _numbers(found: Sequence[int]) -> str | None:
    if not found:
        return None
    more = f" and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
    return "payload" + ("s " if len(found) > 1 else " ") + ", ".join(map(str, found[:_SHOWN])) + more


def summary(found: dict[str, Any]) -> list[str]:
    """Which two were compared, and how much differs."""
    sides = [
        f"{name:<5}payload {side['id']}, {_time(side['fetchedAt'])}, {plural(side['productCount'], 'product')}"
        for name, side in (("From", found["from"]), ("To", found["to"]))
    ]
    d = found["diff"]
    told = ", ".join(
        (
            f"{d['added']:,} added",
            f"{d['removed']:,} removed",
            plural(d["priceChanges"], "price change"),
            plural(d["stockChanges"], "stock change"),
            *((f"{d['unreadable']:,} that cannot be read",) if d["unreadable"] else ()),
        )
    )
    return [*sides, told if any(d.values()) else "Nothing differs."]


def differences(details: dict[str, Any]) -> list[dict[str, Any]]:
    """One row for each product and way in which it differs."""
    found = [_row("new", one, None, _item(one)) for one in details["added"]]
    found += [_row("gone", one, _item(one), None) for one in details["removed"]]
    for one in details["priceChanges"]:
        found.append(_row("price", one, *_differing(one["before"], one["after"], _price)))
    for one in details["stockChanges"]:
        before, after = one["before"], one["after"]
        found.append(_row("stock", one, *_differing(before["options"], after["options"], _stock)))
        if not (found[-1]["before"] or found[-1]["after"]):
            found[-1] |= {"before": before["stockStatus"], "after": after["stockStatus"]}
    found += [_row("unreadable", one, one["before"], one["after"]) for one in details["unreadable"]]
    return found


def _row(what: str, one: dict[str, Any], before: str | None, after: str | None) -> dict[str, Any]:
    return {
        "what": what,
        "name": one["name"],
        "before": before,
        "after": after,
        "product_id": one["providerProductId"],
    }


def _item(one: dict[str, Any]) -> str:
    price = "no price" if one["priceRec"] is None else f"{one['priceRec']:,.2f}"
    return f"{price}, {_WORDS[one['stockStatus']]}"


def _differing(before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]], say: Any) -> tuple[str, str]:
    """Both sides in words, without the options that are the same on both."""
    left = [one for one in before if one not in after]
    right = [one for one in after if one not in before]
    return ", ".join(map(say, left)), ", ".join(map(say, right))


def _price(one: dict[str, Any]) -> str:
    prices = [
        f"{one[key]:,.2f}{word}"
        for key, word in (
            ("priceRec", ""), ("priceRecSpecial", " special"), ("priceMed", " medical"), ("priceMedSpecial", " medical special"),
        )
        if one[key] is not None
    ]  # fmt: skip
    return f"{one['option']} {' / '.join(prices) or 'no price'}"


_WORDS = {"in_stock": "in stock", "oos": "out of stock", "unknown": "stock unknown"}


def _stock(one: dict[str, Any]) -> str:
    if one["quantity"] is None or one["stockStatus"] == "oos":
        return f"{one['option']} {_WORDS[one['stockStatus']]}"
    return f"{one['option']} {one['quantity']:,}{'+' if one['capped'] else ''}"
