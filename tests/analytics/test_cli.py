"""`menuwatch analytics`, as people and programs read it."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import Result

from menuwatch.analytics.reports import NOT_REFRESHED
from menuwatch.core.errors import Refused
from tests.commands import run_here


@pytest.fixture
def run(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a command on a store with two products: one reduced by a fifth, one without a weight."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("MENUWATCH_HOME", str(tmp_path))
    reduced = [{"option": "1g", "price_rec": 10, "special_rec": 8, "stock_status": "in_stock", "weight_g": 1}]
    plain = [{"option": "each", "price_rec": 30, "stock_status": "in_stock"}]
    with psycopg.connect(database_url) as conn:
        conn.execute(
            "INSERT INTO dispensaries (platform_dispensary_id, slug, name, name_raw, state, last_crawled_at, first_crawled_at,"
            " product_count) VALUES ('x', 'shop', 'The Shop', 'The Shop', 'NM', now(), now(), 2)"
        )
        conn.execute(
            "INSERT INTO store_crawls (dispensary_id, crawled_at, products, new_products, changed, unchanged, returned, missing,"
            " out_of_stock, price_changes, stock_changes) SELECT id, last_crawled_at, 2, 2, 0, 0, 0, 0, 0, 0, 0 FROM dispensaries"
        )
        for n, variants in enumerate((reduced, plain)):
            conn.execute(
                "INSERT INTO catalog_products (dispensary_id, provider, provider_product_id, content_hash, first_seen_at, state_from,"
                " changed_at, name_raw, name, brand_name, category_canon, stock_status, is_in_stock, variants, extra)"
                " SELECT id, 'dutchie', %s, '', now(), now(), now(), 'P', 'P', 'Acme', 'flower', 'in_stock', true, %s, '{}'"
                " FROM dispensaries",
                [str(n), json.dumps(variants)],
            )

    def command(*words: str) -> Result:
        result = run_here(["analytics", *words])
        if result.exception is not None and not isinstance(result.exception, SystemExit | Refused):
            raise result.exception
        return result

    return command


def test_before_the_first_refresh(run: Any) -> None:
    shown = run("brands")
    assert (shown.exit_code, shown.stdout) == (0, "")
    assert "run `menuwatch analytics refresh`." in shown.stderr
    assert json.loads(run("brands", "--json").stdout) == {
        "run_id": None, "refreshed_at": None, "window": None, "failed": None, "notice": NOT_REFRESHED, "items": [],
    }  # fmt: skip


def test_every_figure_in_every_form(run: Any) -> None:
    made = json.loads(run("refresh", "--json").stdout)
    assert {step["step"] for step in made["steps"]} >= {"prices", "brands", "discounts", "stock", "days", "stores"}
    (price,) = json.loads(run("price-per-gram", "--state", "nm", "--category", "Flower", "--json").stdout)["items"]
    assert (price["effective"]["median"], price["regular"]["median"], price["options"], price["without_weight"]) == (
        8,
        10,
        1,
        1,
    )
    table = run("price-per-gram", "--state", "NM")
    assert table.stdout.splitlines()[0].split()[:3] == ["State", "Category", "Options"]
    assert table.stdout.splitlines()[1].split()[:4] == ["NM", "flower", "1", "1"]
    assert re.search(r"Refreshed (just now|\d+ s ago)", table.stderr)
    (row,) = csv.DictReader(
        io.StringIO(run("discounts", "--state", "NM", "--category", "all", "--format", "csv").stdout)
    )
    assert (row["products"], row["on_special"], row["depth_median"], row["coverage_stores"]) == (
        "2",
        "1",
        "0.2000",
        "1",
    )
    assert run("discounts", "--state", "all", "--category", "all").stdout.splitlines()[1].split()[:7] == [
        "all", "all", "2", "1", "50.00", "%", "20",
    ]  # fmt: skip
    for words in (
        ("brands", "--brand", "acme"), ("categories", "--state", "nm", "--category", "Flower"),
        ("out-of-stock",), ("out-of-stock", "--by", "store", "--store", "shop"),
        ("new-and-gone", "--by", "store", "--since", "7d"), ("stores", "--fresh"), ("coverage",),
        ("specials", "--verdict", "unknown", "--brand", "ACME"), ("specials", "--by", "store"), ("by-day", "--category", "flower"),
    ):  # fmt: skip
        assert json.loads(run(*words, "--json").stdout)["items"], words
        assert len(run(*words).stdout.splitlines()) > 1, words
        assert len(list(csv.DictReader(io.StringIO(run(*words, "--format", "csv").stdout)))) > 0, words
    days = json.loads(run("by-day", "--json").stdout)
    rows = [*days["items"], *csv.DictReader(io.StringIO(run("by-day", "--format", "csv").stdout))]
    assert all(
        int(row["products"]) == int(row["in_stock"]) + int(row["out_of_stock"]) + int(row["unknown_stock"])
        for row in rows
    )
    assert days["kept_since"] == min(row["day"] for row in days["items"])
    assert f"Days are kept since {days['kept_since']}." in run("by-day").stderr
    early = run("by-day", "--from", "2020-01-01", "--to", "2020-12-31")
    assert (early.stdout, early.stderr.count(f"Days are kept since {days['kept_since']}.")) == ("", 1)
    (covered,) = csv.DictReader(io.StringIO(run("coverage", "--state", "NM", "--format", "csv").stdout))
    assert covered["coverage_partial"] == "0"
    assert json.loads(run("out-of-stock", "--products", "--json").stdout)["items"] == []
    assert "No matching rows." in run("out-of-stock", "--products").stderr


def test_a_table_leaves_out_what_has_no_weight(run: Any, database_url: str) -> None:
    """One more product, an accessory: it has a row among all states together and one in its own."""
    with psycopg.connect(database_url) as conn:
        conn.execute(
            "INSERT INTO catalog_products (dispensary_id, provider, provider_product_id, content_hash, first_seen_at, state_from,"
            " changed_at, name_raw, name, category_canon, stock_status, is_in_stock, variants, extra)"
            " SELECT id, 'dutchie', 'x', '', now(), now(), now(), 'X', 'X', 'accessory', 'in_stock', true,"
            """ '[{"option": "each", "price_rec": 9, "stock_status": "in_stock"}]', '{}' FROM dispensaries"""
        )
    run("refresh")
    assert [row["category"] for row in json.loads(run("price-per-gram", "--json").stdout)["items"]].count(
        "accessory"
    ) == 2
    table = run("price-per-gram")
    assert "accessory" not in table.stdout
    assert "flower" in table.stdout
    assert "Not shown: 2 rows without a known weight (2 options)" in table.stderr
    alone = run("price-per-gram", "--category", "accessory", "--state", "NM")
    assert alone.stdout == ""
    assert "Not shown: 1 row without a known weight (1 option)" in alone.stderr


def test_coverage_takes_a_limit(run: Any) -> None:
    run("refresh")
    assert len(json.loads(run("coverage", "--json").stdout)["items"]) == 2
    assert len(json.loads(run("coverage", "--limit", "1", "--json").stdout)["items"]) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("price-per-gram", "--state", "XX"), "unknown state 'XX'"),
        (("discounts", "--category", "weed"), "unknown --category 'weed'; use one of: accessory"),
        (("stores", "--store", "nowhere"), "store 'nowhere' does not exist"),
        (("out-of-stock", "--state", "all"), "use --by all or --by category"),
        (("out-of-stock", "--brand", "x"), "add --products"),
        (("out-of-stock", "--products", "--by", "state"), "--products and --by are mutually exclusive"),
        (("stores", "--stale", "--fresh"), "--stale and --fresh are mutually exclusive"),
        (("brands", "--json", "--format", "csv"), "mutually exclusive"),
        (("new-and-gone", "--since", "soon"), "--since 'soon' is not a time"),
        (
            ("new-and-gone", "--since", "2999-01-01"),
            "--since '2999-01-01' is in the future: give a time no later than now, 20",
        ),
        (("specials", "--by", "store", "--verdict", "unknown"), "--by and --verdict are mutually exclusive"),
        (("by-day", "--brand", "x"), "add --brands"),
        (("by-day", "--from", "soon"), "--from 'soon' is not a date"),
        (("by-day", "--from", "2026-02-02", "--to", "2026-02-01"), "--from 2026-02-02 is after --to 2026-02-01"),
        (("lowest-prices", "--category", "unknown"), "--category unknown is not supported here"),
        (("lowest-prices", "--state", "XX"), "unknown state 'XX'"),
    ],
)
def test_what_is_refused(run: Any, words: tuple[str, ...], said: str) -> None:
    assert said in str(run(*words).exception)


def test_lowest_prices_in_every_form(run: Any, database_url: str) -> None:
    with psycopg.connect(database_url) as conn:
        conn.execute(
            "INSERT INTO canonical_products (name, category, listings, stores) VALUES ('Kush', 'flower', 1, 1)"
        )
        conn.execute(
            "INSERT INTO match_signatures (key, block, parsed, canonical_product_id)"
            " SELECT gen_random_uuid(), 'b', '{}', id FROM canonical_products"
        )
        conn.execute(
            "INSERT INTO product_matches (product_id, dispensary_id, source_version, signature_id, canonical_product_id)"
            " SELECT p.id, p.dispensary_id, 1, s.id, s.canonical_product_id FROM catalog_products p, match_signatures s"
            " WHERE p.provider_product_id = '0'"
        )
    (row,) = json.loads(run("lowest-prices", "--q", "kush", "--json").stdout)["items"]
    assert (row["size"], row["now"]["price"], row["now"]["store"], row["is_lowest_ever"]) == (
        "1 g",
        8,
        "The Shop",
        True,
    )
    (flat,) = csv.DictReader(io.StringIO(run("lowest-prices", "--csv").stdout))
    assert (flat["now_price"], flat["lowest_ever_store"]) == ("8", "The Shop")
    table = run("lowest-prices").stdout.splitlines()
    assert table[1].split()[:7] == ["1", "Kush", "-", "1", "g", "1", "$8.00"]
    assert "No matching products" in run("lowest-prices", "--category", "edible").stderr
    run("refresh")
    assert json.loads(run("shrinkflation", "--json").stdout)["items"] == []
