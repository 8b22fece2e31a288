"""What analysts read in SQL: views with a meaning for every column, under a role that reads nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from menuwatch.accounts import sql_roles
from menuwatch.analytics.refresh import refresh
from menuwatch.core.errors import Conflict, InvalidField, NotFound
from menuwatch.db.pool import Pool
from menuwatch.exports.tables import TABLES
from menuwatch.ops import dictionary
from tests.commands import menuwatch
from tests.conftest import ROOT, unique
from tests.market import START, add_store, crawl, item
from tests.matching_rows import add_brand, add_product, listing, match

HOW_TO = "\n".join(
    (ROOT / "docs" / "how-to" / name).read_text(encoding="utf-8")
    for name in ("sql.md", "price-index.md", "bargains.md")
)
EXAMPLES = re.findall(r"^```sql\n(.*?)^```", HOW_TO, re.MULTILINE | re.DOTALL)
OTHERS = """
SELECT k.relname FROM pg_class k
 WHERE k.relnamespace = 'public'::regnamespace AND k.relkind IN ('r', 'p', 'v', 'S')
"""


@pytest.fixture
async def role(pool: Pool, database_url: str) -> AsyncIterator[str]:
    """The address of a new role. Roles are the server's, so it is dropped at the end."""
    name = unique("analyst").replace("-", "_")
    async with pool.connection() as conn, conn.transaction():
        password = await sql_roles.put_sql_role(conn, name, timeout_seconds=1)
    yield sql_roles.connection_url(database_url, name, password)
    async with pool.connection() as conn, conn.transaction():
        await sql_roles.remove_sql_role(conn, name)


async def test_every_view_and_column_has_a_meaning_and_a_page(pool: Pool) -> None:
    async with pool.connection() as conn:
        views = await dictionary.list_views(conn)
    assert all(view.meaning and all(column.meaning for column in view.columns) for view in views)
    folder = ROOT / "docs" / "reference" / "sql"
    there = {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir()}
    assert dictionary.pages(views) == there, "run `python -m menuwatch.ops.dictionary URL docs/reference/sql`"


async def test_exports_have_the_columns_of_their_view(pool: Pool) -> None:
    async with pool.connection() as conn:
        views = {view.name: view for view in await dictionary.list_views(conn)}
    for what, columns in TABLES.items():
        assert {one.name for one in views[what.replace("-", "_")].columns} == {one.name for one in columns}, what


async def test_a_role_reads_the_views_and_nothing_else(pool: Pool, role: str) -> None:
    async with pool.connection() as conn:
        views = [view.name for view in await dictionary.list_views(conn)]
        others = [row[0] for row in await (await conn.execute(OTHERS)).fetchall()]
    assert len(others) > 80
    with psycopg.connect(role, autocommit=True) as conn:
        for view in views:
            conn.execute(f"SELECT * FROM {view}").fetchall()
        for other in others:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                conn.execute(f"SELECT * FROM public.{other}")
        conn.execute("SET default_transaction_read_only = off")
        for statement in (
            "CREATE TABLE public.mine (n integer)",
            "INSERT INTO analyst.stores (name) VALUES ('x')",
            "DELETE FROM analyst.brands",
            "SELECT public.claim_tasks(NULL, 'me', 1)",
            "SELECT pg_read_file('/etc/passwd')",
            "COPY (SELECT 1) TO PROGRAM 'true'",
        ):
            with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.ObjectNotInPrerequisiteState)):
                conn.execute(statement)


def test_a_statement_is_canceled_after_its_time(role: str) -> None:
    with psycopg.connect(role, autocommit=True) as conn, pytest.raises(psycopg.errors.QueryCanceled):
        conn.execute("SELECT pg_sleep(30)")


@pytest.mark.parametrize("example", EXAMPLES, ids=[str(n) for n in range(len(EXAMPLES))])
def test_examples_of_the_guide_run(role: str, example: str) -> None:
    with psycopg.connect(role, autocommit=True) as conn:
        assert conn.execute(example.encode()).fetchall() == []


async def test_a_second_password_replaces_the_first(pool: Pool, database_url: str, role: str) -> None:
    name = psycopg.conninfo.conninfo_to_dict(role)["user"]
    async with pool.connection() as conn, conn.transaction():
        second = await sql_roles.put_sql_role(conn, str(name))
        verifiers = await (
            await conn.execute("SELECT rolpassword FROM pg_authid WHERE rolname = %s", [name])
        ).fetchall()
        assert [one.name for one in await sql_roles.list_sql_roles(conn)].count(str(name)) == 1
    assert verifiers[0][0].startswith("SCRAM-SHA-256$")
    assert second not in verifiers[0][0]
    assert second not in role


@pytest.mark.parametrize("name", ["", "pg_ana", "Ana", "1a", "a-b", "a" * 64, 'a"; DROP ROLE b; --'])
async def test_bad_names_are_refused(pool: Pool, name: str) -> None:
    async with pool.connection() as conn:
        with pytest.raises(InvalidField):
            await sql_roles.put_sql_role(conn, name)
        with pytest.raises(NotFound):
            await sql_roles.remove_sql_role(conn, name)


async def test_roles_of_others_are_never_touched(pool: Pool) -> None:
    name = unique("other").replace("-", "_")
    async with pool.connection() as conn:
        await conn.execute(f"CREATE ROLE {name}")
        try:
            with pytest.raises(Conflict):
                await sql_roles.put_sql_role(conn, name)
            with pytest.raises(NotFound):
                await sql_roles.remove_sql_role(conn, name)
        finally:
            await conn.execute(f"DROP ROLE {name}")


@pytest.mark.parametrize(
    ("database_url", "expected"),
    [
        ("postgresql://u:p@db.example:5433/menus?sslmode=require&application_name=x",
         "postgresql://ana:pass-word@db.example:5433/menus?sslmode=require"),
        ("postgresql://u@/menus?host=/run/pg", "postgresql://ana:pass-word@/menus?host=/run/pg"),
        ("postgresql://u:p@db.example", "postgresql://ana:pass-word@db.example/postgres"),
    ],
)  # fmt: skip
def test_the_address_keeps_the_server_and_not_its_user(database_url: str, expected: str) -> None:
    assert sql_roles.connection_url(database_url, "ana", "pass-word") == expected


def test_the_command_line(database_url: str, tmp_path: Path) -> None:
    env: dict[str, Any] = {"DATABASE_URL": database_url, "MENUWATCH_HOME": str(tmp_path), "PATH": ""}
    name = unique("cli").replace("-", "_")
    made = menuwatch("users", "sql", name, "--timeout", "5", env=env)
    assert made.returncode == 0, made.stderr
    with psycopg.connect(made.stdout.strip(), autocommit=True) as conn:
        assert conn.execute("SHOW statement_timeout").fetchone() == ("5s",)
        assert conn.execute("SELECT count(*) FROM stores").fetchone() == (0,)
    assert name in menuwatch("users", "sql-list", env=env).stdout
    assert menuwatch("users", "sql", name, "--remove", env=env).returncode == 0
    again = menuwatch("users", "sql", name, "--remove", env=env)
    assert again.returncode == 2
    assert "no database role of Menuwatch" in again.stderr


def grafana_queries() -> list[tuple[str, str, str]]:
    """Title, format and SQL of each panel of the market dashboard; of its variables too."""
    board = json.loads((ROOT / "deploy" / "grafana" / "market.json").read_text(encoding="utf-8"))
    panels = [
        (one["title"], target["format"], target["rawSql"]) for one in board["panels"] for target in one["targets"]
    ]
    return panels + [
        (one["name"], "table", one["query"]) for one in board["templating"]["list"] if one["type"] == "query"
    ]


def expanded(query: str, product: int) -> str:
    """The SQL that Grafana sends for the last 30 days and two states (its macros, by its manual)."""
    since, until = "'2026-02-10T00:00:00Z'::timestamptz", "'2026-03-12T00:00:00Z'::timestamptz"
    query = re.sub(r"\$__timeFilter\((\w+)\)", rf"\1 BETWEEN {since} AND {until}", query)
    query = re.sub(
        r"\$__timeGroupAlias\((\w+), '1d'\)",
        r'to_timestamp(floor(extract(epoch FROM \1) / 86400) * 86400) AS "time"',
        query,
    )
    query = query.replace("$__timeFrom()", since).replace("$__timeTo()", until)
    query = (
        query.replace("$state", "'AZ','NM'").replace("$category", "'flower','edible'").replace("$product", str(product))
    )
    assert "$" not in query, query
    return query


async def test_queries_of_the_grafana_dashboard_return_values_to_an_analyst(pool: Pool, role: str) -> None:
    """On four stores of one state with two products each: a price changed, and one went out of stock."""
    async with pool.connection() as conn:
        await conn.execute("SELECT ensure_product_history_partition(%s)", [START])
        stores = [await add_store(conn, f"s-{n}") for n in range(4)]
        for n, store in enumerate(stores):
            await crawl(conn, store, 0, [item("a", price=str(10 + n)), item("b", price="9")])
            await crawl(conn, store, 1, [item("a", price=str(20 + n)), item("b", price="9", qty=0)])
        # Stale menus are not compared, and these are of another year.
        await conn.execute("UPDATE dispensaries SET state = 'AZ', crawl_interval_hours = 99999")
        await conn.execute(
            "UPDATE catalog_products SET category_canon = 'flower', price_rec_special = price_rec - 1,"
            " variants = jsonb_set(jsonb_set(variants, '{0,weight_g}', '3.5'), '{0,special_rec}', to_jsonb(price_rec - 1))"
        )
        product = await add_product(conn, "Blue Dream", await add_brand(conn, "Acme"))
        await match(conn, product, *[await listing(conn, store, "a") for store in stores])
    await refresh(pool)
    queries = grafana_queries()
    assert len(queries) >= 13
    with psycopg.connect(role, autocommit=True) as analyst:
        for title, form, query in queries:
            cursor = analyst.execute(expanded(query, product))
            rows = cursor.fetchall()
            columns = [one.name for one in cursor.description or ()]
            assert rows, title
            assert form != "time_series" or columns[0] == "time", title
            empty = [name for at, name in enumerate(columns) if all(row[at] is None for row in rows)]
            assert not empty, title
