"""The dictionary of the views for analysts, read from the comments in the database; it writes the pages of docs/reference/sql:

python -m menuwatch.ops.dictionary DATABASE_URL FOLDER
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from menuwatch.db import sql
from menuwatch.db.pool import Connection, open_pool
from menuwatch.db.query import fetch_all

_q = sql.load(__package__, "dictionary.sql")


class ViewColumn(Struct, kw_only=True, frozen=True):
    """One column; `type` is PostgreSQL's name of its type."""

    name: str
    type: str
    meaning: str


class View(Struct, kw_only=True, frozen=True):
    """One view of the schema `analyst`."""

    name: str
    meaning: str
    columns: list[ViewColumn]


async def list_views(conn: Connection) -> list[View]:
    """The views, by name."""
    views: dict[str, View] = {}
    for row in await fetch_all(conn, _q.columns, {}):
        view = views.setdefault(row["view"], View(name=row["view"], meaning=row["view_meaning"], columns=[]))
        view.columns.append(ViewColumn(name=row["name"], type=row["type"], meaning=row["meaning"]))
    return list(views.values())


def page(view: View) -> str:
    """The reference page of a view, in Markdown."""
    rows = (f"| `{column.name}` | {column.type} | {column.meaning} |" for column in view.columns)
    return "\n".join(
        [f"# analyst.{view.name}", "", view.meaning, "", "| column | type | meaning |", "|---|---|---|", *rows, ""]
    )


def index(views: Sequence[View]) -> str:
    """The page that lists the views, in Markdown."""
    return "\n".join(
        [
            "# SQL views for analysts",
            "",
            "The views of the schema `analyst`. [Query with SQL](../../how-to/sql.md) says how to connect;",
            "[Fields and data quality](../data-quality.md) where the values come from, and where they mislead.",
            "",
            "| view | rows |",
            "|---|---|",
            *(f"| [{view.name}]({view.name}.md) | {view.meaning} |" for view in views),
            "",
        ]
    )


def pages(views: Sequence[View]) -> dict[str, str]:
    """All pages, by file name."""
    return {"README.md": index(views), **{f"{view.name}.md": page(view) for view in views}}


async def _views_of(url: str) -> list[View]:
    async with open_pool(url) as pool, pool.connection() as conn:
        return await list_views(conn)


def main(url: str, folder: Path) -> None:
    """Writes the pages of a database's views."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages(asyncio.run(_views_of(url))).items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
