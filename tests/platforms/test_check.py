"""What `platforms check` says of recorded pages: shares, odd values, undeclared fields, and items that are dropped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from menuwatch.platforms.report import report
from menuwatch.platforms.weedmaps.adapter import Weedmaps
from tests.commands import menuwatch


def item(number: int, **attributes: Any) -> dict[str, Any]:
    at = {"name": f"Thing {number}", "prices": {"price_unit": 10}, "inventory_quantity": 3, **attributes}
    return {"id": number, "attributes": at, "relationships": {"listing": {"data": {"id": 7}}}}


def page(*items: Any) -> bytes:
    return json.dumps({"meta": {"total": len(items), "per_page": 100}, "data": items}).encode()


def test_the_report() -> None:
    first = page(
        item(1, brand_name="North"),
        item(2, brand_name=None),
        item(3, name=None, slug="third"),
        item(4, created_at="soon", colour="green"),
    )
    made = report(
        Weedmaps(), [("a.json", first), ("b.json", b"<html>"), ("c.json", page()), ("d.json", page(item(1), item(1)))]
    )
    assert (made.pages, made.items, made.products, made.repeated) == (3, 6, 5, 1)
    (dropped,) = made.dropped
    assert (dropped.source, dropped.position, dropped.product_id, dropped.field) == (
        "a.json",
        3,
        "3",
        "attributes.name",
    )
    assert made.undeclared == ["data[].attributes.colour"]
    assert [line.partition(":")[0] for line in made.unread] == ["b.json"]
    fields = {row.field.removeprefix("data[].attributes."): row for row in made.fields}
    assert (fields["name"].filled, fields["brand_name"].filled) == (round(5 / 6, 4), round(1 / 6, 4))
    assert (fields["created_at"].odd, fields["name"].odd, fields["brand_name"].odd) == (1, 1, 0)
    assert "soon" in str(fields["created_at"].odd_example)
    columns = {row.column: row for row in made.columns}
    assert (columns["brand_name"].filled, columns["price_rec"].filled, columns["price_rec"].values) == (0.2, 1.0, 1)


def test_the_command(tmp_path: Path) -> None:
    file = tmp_path / "menu.json"
    file.write_bytes(page(item(1), item(2, name=None)))
    done = menuwatch("platforms", "check", "weedmaps", str(file))
    assert done.returncode == 1
    assert f"{file}: item 2 dropped (without a name): attributes.name is missing" in done.stderr
    assert "1 page: 2 items, 1 product, 1 dropped" in done.stderr
    found = json.loads(menuwatch("platforms", "check", "weedmaps", str(file), "--format", "json").stdout)
    assert (found["items"], found["products"], found["dropped"][0]["position"]) == (2, 1, 2)
    file.write_bytes(page(item(1), item(2)))
    assert menuwatch("platforms", "check", "weedmaps", str(file)).returncode == 0
    assert menuwatch("platforms", "check", "dutchie", str(file)).returncode == 1
    unknown = menuwatch("platforms", "check", "leafly", str(file))
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "unknown platform 'leafly'; use one of: dutchie, " in unknown.stderr
