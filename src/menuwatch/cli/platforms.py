"""`menuwatch platforms`: the platforms of this installation, a new one, and what one makes of recorded responses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from menuwatch.cli.options import Commands, Output, check_platform, require_files
from menuwatch.cli.output import Column, Format, echo, notice, print_json, print_list
from menuwatch.cli.startup import load_settings, read
from menuwatch.core.errors import Refused
from menuwatch.core.format import pluralize
from menuwatch.pipeline.recording_reader import LeftOut, read_file
from menuwatch.platforms import registry
from menuwatch.platforms.new_package import write_package
from menuwatch.platforms.report import Report, report
from menuwatch.stores import store as stores

app = Commands("List platforms, create a new one, and check one with recorded responses.")

COLUMNS = (
    Column("Platform", "platform", rank=1),
    Column("Menus", "menus", rank=2),
    Column("Stores", "stores", rank=3),
    Column("Normalizer", "normalizer_version"),
    Column("Package", "package", rank=4),
    Column("Problem", "problem", rank=5),
)
FIELD_COLUMNS = (
    Column("Field", "field", rank=1),
    Column("Use", "use", rank=2),
    Column("Filled", lambda row: f"{row.filled:.0%}", rank=3),
    Column("Odd", lambda row: row.odd or None, rank=4),
    Column("Column or reason", "note", rank=6),
    Column("Example", "example", rank=7),
    Column("Odd value", "odd_example", rank=5),
)
_SHOWN = 20


@app.command("list")
def list_(out: Output) -> None:
    """List platforms: how their menus are obtained, their stores, and the package that provides each."""

    platforms, origins = registry.platforms(load_settings()), registry.origins()
    try:
        counts = read(lambda _, conn: stores.count_by_platform(conn))
    except Refused as error:
        notice(f"menuwatch: stores could not be counted: {error}")
        counts = {}
    rows: list[dict[str, Any]] = [
        {
            "platform": name,
            "menus": _menus(platform),
            "requested": platform.requested,
            "base_url": platform.base_url or None,
            "stores": counts.get(name, 0),
            "normalizer_version": platform.normalizer_version,
            "example_url": platform.example_url or None,
            "package": origins[name],
            "problem": None,
        }
        for name, platform in platforms.items()
    ]
    for unusable in registry.installed()[1]:
        stored = counts.get(unusable.name, 0)
        named = {"platform": unusable.name, "package": unusable.package, "problem": unusable.problem}
        rows.append({**dict.fromkeys(rows[0]), **named, "requested": False, "stores": stored})
    print_list(rows, COLUMNS, out.format)


def _menus(platform: Any) -> str:
    if not platform.can_be_requested():
        return "imported only"
    if not platform.requested:
        return f"imported; to crawl them, set {platform.name.upper()}_BASE_URL"
    return f"crawled at {platform.base_url}" if platform.base_url else "crawled at the shops' own sites"


@app.command("new")
def new(
    name: Annotated[str, typer.Argument(help="Name of the platform, for example acme_menus.")],
    into: Annotated[Path, typer.Option("--into", help="Folder in which the package's folder is created.")] = Path(),
) -> None:
    """Write the package of a new platform: an adapter for a made-up menu, a sample file, and tests that pass."""
    written = write_package(name, into)
    root = written[0].parent
    echo(f"Wrote {root}: {pluralize(len(written), 'file')}.")
    notice(
        f"Next: pip install -e {root} && pytest {root}",
        "Then replace the sample and adapt the adapter: docs/how-to/add-a-platform.md",
    )


@app.command("check")
def check(
    name: Annotated[str, typer.Argument(help="Name of the platform.", metavar="NAME")],
    files: Annotated[
        list[Path], typer.Argument(help="Recorded responses: .json, .json.gz, archive files, or tar archives of them.")
    ],
    out: Output,
) -> None:
    """Report how a platform's adapter reads recorded responses: for every field its use, how often it is filled, and odd values;
    and every item that is dropped, with its position and the reason. Nothing is stored. Exit code 1 if an item is dropped, a field
    is undeclared, or a file is not a menu of the platform."""
    require_files(files)
    platforms = registry.platforms(load_settings())
    check_platform(platforms, name)
    made = report(platforms[name], _pages(name, files))
    if out.format is Format.JSON:
        print_json(made)
    else:
        print_list(made.fields, FIELD_COLUMNS, out.format, empty="These files contain no fields.")
        _notes(made)
    if made.dropped or made.undeclared or made.unread:
        raise typer.Exit(1)


def _pages(name: str, files: list[Path]) -> list[tuple[str, bytes]]:
    pages: list[tuple[str, bytes]] = []
    for path in files:
        for source, content in read_file(path):
            if isinstance(content, bytes):
                pages.append((source, content))
            elif isinstance(content, LeftOut):
                notice(f"menuwatch: {content.source}: skipped: {content.reason}")
            elif content.platform != name:
                raise Refused(f"{source}: is an archive file of {content.platform}, not of {name}")
            else:
                pages += [(f"{source} page {number}", page) for number, page in enumerate(content.pages, 1)]
    return pages


def _notes(made: Report) -> None:
    shown = [
        f"{row.source}: item {row.position} dropped ({row.name or 'without a name'}): {row.field or 'the item'} {row.reason}"
        for row in made.dropped
    ]
    _some(shown, "dropped items")
    _some([f"undeclared field: {path}" for path in made.undeclared], "undeclared fields")
    _some([f"skipped: {line}" for line in made.unread], "skipped files")
    empty = [row.column for row in made.columns if not row.filled]
    if made.products and empty:
        notice(f"Columns without a value in any product: {', '.join(empty)}")
    if made.repeated:
        notice(f"{pluralize(made.repeated, 'item')} repeated the product of another item of the file")
    notice(
        f"{pluralize(made.pages, 'page')}: {pluralize(made.items, 'item')}, {pluralize(made.products, 'product')}, "
        f"{len(made.dropped)} dropped; {pluralize(len(made.fields), 'field')}, {len(made.undeclared)} undeclared"
    )


def _some(lines: list[str], what: str) -> None:
    notice(*(f"menuwatch: {line}" for line in lines[:_SHOWN]))
    if len(lines) > _SHOWN:
        notice(f"menuwatch: and {len(lines) - _SHOWN} more {what} (--json lists all)")
