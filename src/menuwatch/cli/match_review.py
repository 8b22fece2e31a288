"""`menuwatch match`: pairs to review, corrections and brands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from menuwatch.cli.options import Commands, JsonOption, LimitedOutput, Output, limit_option, require_files
from menuwatch.cli.output import Column, echo, notice, print_json, print_list
from menuwatch.cli.startup import in_transaction, read
from menuwatch.core.errors import Refused
from menuwatch.core.format import pluralize
from menuwatch.db.pool import Connection
from menuwatch.matching import brand_edits, bulk_corrections, corrections, review
from menuwatch.matching.brand_edits import BrandEdit, MatchedBrand
from menuwatch.matching.corrections import Correction, CorrectionFilter, CorrectionResult, decode_listing
from menuwatch.matching.review import MatchReview, ReviewFilter, Skip, decode_side
from menuwatch.system import System

app = Commands("Review, correct and edit matches.")

AArgument = Annotated[int, typer.Argument(help="Id of a product.", metavar="A", min=1)]
BArgument = Annotated[int, typer.Argument(help="Id of another product.", metavar="B", min=1)]
NoteOption = Annotated[str | None, typer.Option("--note", help="Why.")]
ReplaceOption = Annotated[bool, typer.Option("--replace", help="Withdraw an earlier correction to the contrary.")]
BrandArgument = Annotated[str, typer.Argument(help="Id, name or spelling of the brand.", metavar="BRAND")]

_LARGEST_FILE = 10_000_000


def _side(which: str) -> Column:
    def text(row: MatchReview) -> str:
        side = decode_side(getattr(row, which))
        return f"{side.product_id}: {side.brand or '–'} · {side.name} ({side.store or 'removed store'})"

    return Column(which.upper(), text, rank=1)


REVIEW_COLUMNS = (
    Column("Sure", lambda row: f"{row.confidence:.0%}"),
    Column("Now", lambda row: "together" if row.together else "apart"),
    Column("Listings", "impact"),
    _side("a"),
    _side("b"),
)


def _listing(which: str) -> Column:
    def text(row: Correction) -> str:
        listing = decode_listing(getattr(row, which))
        return f"{listing.brand} · {listing.name}" if listing.brand else listing.name

    return Column(which.upper(), text, rank=1)


CORRECTION_COLUMNS = (
    Column("#", "id"),
    Column("Made", "made_at"),
    Column("By", "made_by"),
    _listing("a"),
    Column("Verdict", lambda row: "same" if row.same else "different"),
    _listing("b"),
    Column("State", "state"),
    Column("Note", "note", rank=2),
)
BRAND_COLUMNS = (
    Column("#", "id"),
    Column("Name", "name", rank=1),
    Column("Spellings", lambda row: ", ".join(one.spelling for one in brand_edits.decode_spellings(row)), rank=2),
    Column("Products", "products"),
    Column("Listings", "listings"),
    Column("Stores", "stores"),
    Column("Merged into", "merged_into_name"),
)


@app.command("review")
def review_(
    out: Output,
    category: Annotated[
        str | None,
        typer.Option(
            "--category",
            help="Only this kind of product: flower, vaporizer, concentrate, edible, topical, accessory, "
            "cultivation or other.",
        ),
    ] = None,
    brand: Annotated[str | None, typer.Option("--brand", help="Only this brand: id, name or spelling.")] = None,
    together: Annotated[
        bool | None, typer.Option("--together/--apart", help="Only pairs that are one product now, or are not.")
    ] = None,
    min_impact: Annotated[
        int | None, typer.Option("--min-impact", min=0, help="Minimum number of listings that a decision moves.")
    ] = None,
    skipped: Annotated[bool, typer.Option("--skipped", help="Only pairs that were skipped.")] = False,
    limit: Annotated[int, limit_option(1000)] = 20,
) -> None:
    """List pairs that a person should judge, the most doubtful and most used first."""
    where = ReviewFilter(category=category, brand=brand, together=together, min_impact=min_impact, skipped=skipped)

    async def act(_: System, conn: Connection) -> list[MatchReview]:
        return (await review.list_reviews(conn, where, limit=limit)).items

    print_list(read(act), REVIEW_COLUMNS, out.format, empty="No pairs to review.")


@app.command("same")
def same(
    a: AArgument, b: BArgument, note: NoteOption = None, replace: ReplaceOption = False, json: JsonOption = False
) -> None:
    """Record that two products are the same, and with them everything written like them."""
    _correct(a, b, True, note, replace, json)


@app.command("different")
def different(
    a: AArgument, b: BArgument, note: NoteOption = None, replace: ReplaceOption = False, json: JsonOption = False
) -> None:
    """Record that two products are different, and with them everything written like them."""
    _correct(a, b, False, note, replace, json)


def _correct(a: int, b: int, same: bool, note: str | None, replace: bool, json: bool) -> None:
    async def act(_: System, conn: Connection) -> CorrectionResult:
        return await corrections.correct(conn, a, b, same, note=note, replace=replace)

    result = in_transaction(act)
    if json:
        print_json(result)
    else:
        echo(f"{result.detail[0].upper()}{result.detail[1:]}.")


@app.command("correct")
def correct(
    file: Annotated[Path, typer.Argument(help="CSV with the columns a, b, same|different, note.", metavar="FILE")],
    replace: ReplaceOption = False,
    json: JsonOption = False,
) -> None:
    """Apply the corrections in a file: all, or none if a line is invalid."""
    require_files([file])
    if file.stat().st_size > _LARGEST_FILE:
        raise Refused(f"{file} is larger than {_LARGEST_FILE / 1e6:.0f} MB: split it")
    try:
        rows = bulk_corrections.parse_corrections(file.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise Refused(f"{file} is not UTF-8 text: {error.reason} at byte {error.start:,}") from None
    result = in_transaction(lambda _, conn: bulk_corrections.correct_many(conn, rows, replace=replace))
    if json:
        print_json(result)
        return
    echo(f"{pluralize(result.recorded + result.replaced, 'correction')} recorded.")
    if result.repeated:
        notice(f"{result.repeated:,} had already been made.")
    if result.alike:
        notice(f"{result.alike:,} are about products that are written alike and need none.")


@app.command("corrections")
def list_corrections(
    out: LimitedOutput,
    product: Annotated[int | None, typer.Option("--product", min=1, help="Only those about this product.")] = None,
    by: Annotated[str | None, typer.Option("--by", help="Only those by this user.")] = None,
    active: Annotated[
        bool | None, typer.Option("--active/--withdrawn", help="Only those in force, or only withdrawn ones.")
    ] = None,
) -> None:
    """List corrections, newest first, and whether they are applied."""
    where = CorrectionFilter(active=active, made_by=by, products=None if product is None else [product])
    rows = read(lambda _, conn: corrections.list_corrections(conn, where, limit=out.rows + 1))
    out.show(
        rows, CORRECTION_COLUMNS, "correction", empty="No corrections. `menuwatch match review` lists pairs to judge."
    )


@app.command("withdraw")
def withdraw(
    number: Annotated[int, typer.Argument(help="Id of the correction.", metavar="ID", min=1)], json: JsonOption = False
) -> None:
    """Withdraw a correction: the matcher decides again."""
    correction = in_transaction(lambda _, conn: corrections.withdraw(conn, number))
    if json:
        print_json(correction)
    else:
        echo(f"Correction {number} withdrawn; the matcher decides again.")


@app.command("skip")
def skip(
    a: AArgument,
    b: BArgument,
    undo: Annotated[bool, typer.Option("--undo", help="Put the pair back into the queue.")] = False,
    json: JsonOption = False,
) -> None:
    """Skip a pair to review without a decision."""

    async def act(_: System, conn: Connection) -> Skip:
        return await review.skip_review(conn, a, b, skipped=not undo)

    result = in_transaction(act)
    if json:
        print_json(result)
    else:
        echo(f"The pair is {'back in the queue' if undo else 'skipped'}.")


@app.command("brands")
def brands(
    out: LimitedOutput,
    q: Annotated[str | None, typer.Option("--q", help="Text that the name or a spelling contains.")] = None,
    merged: Annotated[bool, typer.Option("--merged", help="Only brands that were merged into others.")] = False,
) -> None:
    """List brands with their spellings."""

    async def act(_: System, conn: Connection) -> list[MatchedBrand]:
        return await brand_edits.list_brands(conn, q=q, merged=merged, limit=out.rows + 1)

    out.show(read(act), BRAND_COLUMNS, "brand", empty="No brands yet: they appear once a menu is matched.")


def _print_edit(edit: BrandEdit, text: str, json: bool) -> None:
    if json:
        print_json(edit)
    else:
        echo(f"{text}; {pluralize(edit.listings, 'listing')} to be matched again.")


@app.command("merge-brands")
def merge_brands(
    brand: BrandArgument,
    into: Annotated[str, typer.Argument(help="Id, name or spelling of the brand that stays.", metavar="INTO")],
    json: JsonOption = False,
) -> None:
    """Merge a brand into another one, which gets its spellings."""

    async def act(_: System, conn: Connection) -> tuple[str, BrandEdit]:
        one, other = await brand_edits.find_brand(conn, brand), await brand_edits.find_brand(conn, into)
        return one.name, await brand_edits.merge_brands(conn, one.id, other.id)

    name, edit = in_transaction(act)
    _print_edit(edit, f"{name} was merged into {edit.brand.name}", json)


@app.command("unmerge-brand")
def unmerge_brand(
    brand: Annotated[int, typer.Argument(help="Id of the brand.", metavar="ID", min=1)], json: JsonOption = False
) -> None:
    """Undo the merge of a brand, which gets its spellings back."""
    edit = in_transaction(lambda _, conn: brand_edits.unmerge_brand(conn, brand))
    _print_edit(edit, f"{edit.brand.name} is a separate brand again", json)


@app.command("move-spelling")
def move_spelling(
    spelling: Annotated[str, typer.Argument(help="As menus write it.", metavar="SPELLING")],
    to: Annotated[str | None, typer.Option("--to", help="Brand: id, name or spelling.")] = None,
    new: Annotated[str | None, typer.Option("--new", help="Name of a new brand.")] = None,
    json: JsonOption = False,
) -> None:
    """Assign a spelling to a brand."""
    if (to is None) == (new is None):
        raise Refused("give either --to with a brand, or --new with the name of a new one")

    async def act(_: System, conn: Connection) -> BrandEdit:
        brand_id = None if to is None else (await brand_edits.find_brand(conn, to)).id
        return await brand_edits.move_spelling(conn, spelling, brand_id=brand_id, new_brand=new)

    edit = in_transaction(act)
    _print_edit(edit, f"{spelling} is now a spelling of {edit.brand.name}", json)


@app.command("rename-brand")
def rename_brand(
    brand: BrandArgument,
    name: Annotated[str, typer.Argument(help="Name to display.", metavar="NAME")],
    json: JsonOption = False,
) -> None:
    """Change the name of a brand; its address stays."""

    async def act(_: System, conn: Connection) -> tuple[str, BrandEdit]:
        found = await brand_edits.find_brand(conn, brand)
        return found.name, await brand_edits.rename_brand(conn, found.id, name)

    was, edit = in_transaction(act)
    if json:
        print_json(edit)
    else:
        echo(f"{was} is now named {edit.brand.name}.")
