"""The description of a published dataset as a Data Package 2.0 (https://datapackage.org), and its data dictionary as a page. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from menuwatch import __version__
from menuwatch.exports.dataset import DATASET, DatasetTable
from menuwatch.exports.tables import Kind

_FIELDS: Mapping[Kind, tuple[str, str]] = {
    Kind.WHOLE: ("integer", "BIGINT"),
    Kind.TEXT: ("string", "VARCHAR"),
    Kind.FLAG: ("boolean", "BOOLEAN"),
    Kind.NUMBER: ("number", "DECIMAL(18, 6)"),
    Kind.REAL: ("number", "DOUBLE"),
    Kind.TIME: ("datetime", "TIMESTAMP WITH TIME ZONE"),
    Kind.DATE: ("date", "DATE"),
    Kind.JSON: ("string", "VARCHAR"),
}
"""Types of a column: of Table Schema, and of SQL."""
NO_LICENCE = "No licence is granted: ask the publisher before you use, copy or pass on the data."
Texts = Mapping[str, Mapping[str, str]]
"""Meaning of each column, by table."""


class DataFile(msgspec.Struct, kw_only=True, frozen=True):
    """A file of a table. `hash` is SHA-256 of its content, as `sha256:…`."""

    path: str
    rows: int
    bytes: int
    hash: str


class Source(msgspec.Struct, kw_only=True, frozen=True):
    """A platform that the menus come from, and the crawls behind the dataset."""

    platform: str
    stores: int
    crawls: int
    first_crawl: datetime
    last_crawl: datetime


def sql_type(kind: Kind) -> str:
    """The SQL type of a column's values in Parquet."""
    return _FIELDS[kind][1]


def meanings(views: Texts) -> Texts:
    """The meaning of every column: the table's own text, or that of the view for analysts. Raises KeyError if neither has one."""
    return {
        table.name: {column.name: table.texts.get(column.name) or views[table.view][column.name] for column in table.columns}
        for table in DATASET
    }  # fmt: skip


def description(
    *,
    title: str,
    licence: str | None,
    version: int,
    created: datetime,
    files: Mapping[str, Sequence[DataFile]],
    texts: Texts,
    sources: Sequence[Source],
    catalogue: str | None,
    published: Sequence[int],
) -> dict[str, Any]:
    """The content of `datapackage.json`. `published` are the versions whose files are there, the newest last."""
    about = "Prices, stock and potency of products on the menus of dispensaries, as they were observed, and how they changed."
    package: dict[str, Any] = {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "name": "menuwatch-dataset",
        "title": title,
        "description": f"{about} {NO_LICENCE}" if licence is None else about,
        "version": f"1.{version}.0",
        "created": f"{created:%Y-%m-%dT%H:%M:%SZ}",
    }
    if licence is not None:
        package["licenses"] = [_licence(licence)]
    if sources:
        package["sources"] = [{"title": f"Menus that {source.platform} serves"} for source in sources]
    package["resources"] = [_resource(table, files[table.name], texts[table.name]) for table in DATASET]
    package["menuwatch"] = {
        "release": __version__,
        "version": version,
        "versions": list(published),
        "catalogue": catalogue,
        "provenance": msgspec.to_builtins(list(sources)),
    }
    return package


def _licence(text: str) -> dict[str, str]:
    return {"path": text, "title": text} if "://" in text else {"name": text.replace(" ", "-"), "title": text}


def _resource(table: DatasetTable, files: Sequence[DataFile], texts: Mapping[str, str]) -> dict[str, Any]:
    keys = [
        {"fields": [column], "reference": {"resource": to, "fields": [_key(to)]}}
        for column, to in table.references.items()
    ]
    paths = [file.path for file in files]
    return {
        "name": table.name,
        "type": "table",
        "description": table.meaning,
        "path": paths[0] if len(paths) == 1 else paths,
        "format": "parquet",
        "mediatype": "application/vnd.apache.parquet",
        "bytes": sum(file.bytes for file in files),
        **({"hash": files[0].hash} if len(files) == 1 else {}),
        "schema": {
            "$schema": "https://datapackage.org/profiles/2.0/tableschema.json",
            "fields": [
                {
                    "name": column.name,
                    "type": _FIELDS[column.kind][0],
                    "description": texts[column.name],
                    **({"constraints": {"required": True}} if column.name in table.key else {}),
                }
                for column in table.columns
            ],
            "primaryKey": list(table.key),
            **({"foreignKeys": keys} if keys else {}),
        },
        "rows": sum(file.rows for file in files),
        "files": msgspec.to_builtins(list(files)),
    }


def _key(name: str) -> str:
    return next(table.key[0] for table in DATASET if table.name == name)


def dictionary(title: str, licence: str | None, texts: Texts) -> str:
    """The data dictionary, in Markdown."""
    lines = [f"# {title}: data dictionary", "", f"Licence: {licence}" if licence else NO_LICENCE, ""]
    lines += ["Read the files that `datapackage.json` lists: the folder also holds those of earlier versions."]
    for table in DATASET:
        lines += ["", f"## {table.name}", "", table.meaning, "", f"Key: {', '.join(table.key)}.", ""]
        lines += ["| column | type | meaning |", "|---|---|---|"]
        lines += [f"| `{c.name}` | {sql_type(c.kind)} | {texts[table.name][c.name]} |" for c in table.columns]
    return "\n".join([*lines, ""])
