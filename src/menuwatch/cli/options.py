"""Options that several commands have, declared once, and the parsing of their values."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar, get_origin, get_type_hints

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup
from typer.models import ArgumentInfo

from menuwatch.cli import completion
from menuwatch.cli.output import Column, Format, notice, print_list
from menuwatch.core.errors import Refused
from menuwatch.core.format import pluralize
from menuwatch.core.moments import parse_past as parse_past
from menuwatch.core.moments import parse_since as parse_since
from menuwatch.geo.circle import DEFAULT_MILES, FARTHEST_MILES, PLACE_FORMS, Circle, parse_area
from menuwatch.geo.states import parse_state

if TYPE_CHECKING:
    from menuwatch.db.pool import Connection

P = ParamSpec("P")
R = TypeVar("R")

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
StoreOption = Annotated[str | None, typer.Option("--store", help="Only this store: name, slug or ID.")]
StoresOption = Annotated[
    list[str] | None, typer.Option("--store", help="Only this store: name, slug or ID (repeatable).")
]
StatesOption = Annotated[
    list[str] | None,
    typer.Option("--state", help="Only stores in this state or province, for example NM (repeatable)."),
]
NearOption = Annotated[
    str | None,
    typer.Option(
        "--near",
        help=f"Only near this place: {PLACE_FORMS}.",
        metavar="PLACE",
    ),
]
MilesOption = Annotated[
    float | None,
    typer.Option(
        "--miles", min=0.1, max=FARTHEST_MILES, help=f"Distance from --near, in miles; {DEFAULT_MILES} by default."
    ),
]
UpdatedOption = Annotated[
    str | None,
    typer.Option("--updated-since", help="Only what changed at or after this time: a date, a time or an age (7d)."),
]
PlatformsOption = Annotated[list[str] | None, typer.Option("--platform", help="Only this platform (repeatable).")]
SinceOption = Annotated[
    str | None,
    typer.Option(
        "--since", help="Only at or after this time: a date, a time (ISO 8601), or an age such as 90m, 6h, 7d."
    ),
]
UntilOption = Annotated[str | None, typer.Option("--until", help="Only before this time.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would change.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation prompt.")]
UserArgument = Annotated[str, typer.Argument(help="Name of the user.", metavar="USER")]

TABLE_LIMIT = 100
_UNLIMITED = 10_000_000


def parse_circle(near: str | None, miles: float | None) -> Circle | None:
    """The circle of `--near` and `--miles`; raises Refused."""
    if near is None:
        if miles is not None:
            raise Refused("--miles needs --near: the place that the distance is from")
        return None
    try:
        return parse_area(near, miles or DEFAULT_MILES).circle
    except Refused as error:
        raise Refused(f"--near: {error}") from None


def parse_updated(text: str | None) -> datetime | None:
    """The time of `--updated-since`; raises Refused."""
    return None if text is None else parse_past(text, datetime.now(UTC), "--updated-since")


def limit_option(maximum: int | None = None) -> Any:
    """`--limit`, at most `maximum`."""
    return typer.Option("--limit", min=1, max=maximum, help="Maximum number of rows.")


@dataclasses.dataclass(frozen=True, slots=True)
class Output:
    """How a list is printed."""

    json: JsonOption = False
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False
    fmt: Annotated[Format | None, typer.Option("--format", hidden=True)] = None
    """Another spelling of --json and --csv."""

    def __post_init__(self) -> None:
        if len(self._chosen) > 1:
            asked = [f"--{name}" for name in (Format.JSON, Format.CSV) if getattr(self, name)]
            asked += [f"--format {self.fmt}"] if self.fmt else []
            raise Refused(f"{' and '.join(asked)} are mutually exclusive")

    @property
    def _chosen(self) -> set[Format]:
        flags = [Format.JSON] * self.json + [Format.CSV] * self.csv
        return {*flags, *([self.fmt] if self.fmt else ())}

    @property
    def format(self) -> Format:
        return next(iter(self._chosen), Format.TABLE)

    @property
    def is_table(self) -> bool:
        return self.format is Format.TABLE


@dataclasses.dataclass(frozen=True, slots=True)
class LimitedOutput(Output):
    """How a long list is printed: tables have 100 rows by default."""

    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Maximum number of rows. Tables show 100 by default.")
    ] = None

    @property
    def rows(self) -> int:
        """Maximum number of rows."""
        return self.limit or (TABLE_LIMIT if self.is_table else _UNLIMITED)

    def show(
        self, rows: Sequence[Any], columns: Sequence[Column], noun: str, plural: str | None = None, *, empty: str = ""
    ) -> None:
        """Prints the first of all rows."""
        print_list(rows[: self.rows], columns, self.format, empty=empty)
        self.note_limit(len(rows) > self.rows, noun, plural)

    def note_limit(self, more: bool, noun: str = "row", plural: str | None = None) -> None:
        """Says that a table was cut at its default."""
        if more and self.is_table and self.limit is None:
            notice(f"First {pluralize(TABLE_LIMIT, noun, plural)}; use --limit or --csv for more.")


class Shell(StrEnum):
    """Shells with completion."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"


class Group(TyperGroup):
    """A group of commands with help in the style of `Command`."""

    def get_params(self, ctx: Any) -> list[Any]:
        return [_name_value(param) for param in super().get_params(ctx)]


class Command(TyperCommand):
    """A command whose help names values in capitals, and which lists of commands describe by its first sentence."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.short_help = self.short_help or re.split(r"(?<=\.) (?=[A-Z])", " ".join((self.help or "").split()))[0]

    def get_params(self, ctx: Any) -> list[Any]:
        return [_name_value(param) for param in super().get_params(ctx)]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [re.sub(r"^\{(.*)\}", r"\1", piece) for piece in super().collect_usage_pieces(ctx)]


_LONGEST_CHOICES = 24


def _name_value(param: Any) -> Any:
    """The parameter, with a name for its value in help and usage: none for flags, the choices if they are short."""
    if isinstance(param, TyperArgument):
        name = param.metavar or (param.name or "").replace("_", "-").upper()
        param.metavar = name if param.nargs == 1 else name.rstrip(".…")
        param.display_type_rich = lambda ctx: None  # type: ignore[method-assign]
    elif param.metavar is None:
        choices = [str(choice) for choice in param.type_descriptor.choices or ()]
        param.metavar = max(param.opts, key=len).lstrip("-").upper()
        if param.is_flag:
            param.metavar = ""
        elif choices and len("|".join(choices)) <= _LONGEST_CHOICES:
            param.metavar = "|".join(choices)
        elif choices:
            param.help = f"{param.help} One of: {', '.join(choices)}."
    return param


class Commands(typer.Typer):
    """A group of commands. A parameter whose type is a dataclass stands for an option for each of its fields."""

    def __init__(self, description: str) -> None:
        super().__init__(cls=Group, help=description, no_args_is_help=True)

    def command(  # type: ignore[override]
        self, name: str | None = None, **settings: Any
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        def register(function: Callable[P, R]) -> Callable[P, R]:
            typer.Typer.command(self, name, cls=Command, **settings)(spread(function))
            return function

        return register


def spread(command: Callable[P, R]) -> Callable[..., R]:
    """The command with options in place of its dataclass parameters; it is called with the dataclasses that they make."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, tuple[Any, list[str]]] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        kind = _completed(name, hints[name])
        if not dataclasses.is_dataclass(kind):
            parameters.append(parameter.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        types = get_type_hints(kind, include_extras=True)
        fields = [field for field in dataclasses.fields(kind) if field.init]
        groups[name] = kind, [field.name for field in fields]
        parameters += [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default,
                annotation=_completed(field.name, types[field.name]),
            )
            for field in fields
        ]

    @functools.wraps(command)
    def with_options(**values: Any) -> R:
        options = {
            name: kind(**{field: values.pop(field) for field in fields}) for name, (kind, fields) in groups.items()
        }
        function: Callable[..., R] = command
        return function(**values, **options)

    with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return with_options


_TEXTS = (str, str | None, list[str], list[str] | None)


def _completed(name: str, kind: Any) -> Any:
    """The annotation of a parameter, with the completion of its values where its name says what they are."""
    if get_origin(kind) is Annotated:
        info = kind.__metadata__[0]
        complete = completion.VALUES.get(name) or completion.VALUES.get((info.metavar or "").lower())
        if isinstance(info, ArgumentInfo):
            complete = completion.ARGUMENTS.get(name, complete)
        if kind.__origin__ in _TEXTS and complete is not None and info.autocompletion is None:
            info.autocompletion = complete
    return kind


def parse_period(since: str | None, until: str | None) -> tuple[datetime | None, datetime | None]:
    """The values of --since and --until."""
    now = datetime.now(UTC)
    start = parse_past(since, now) if since else None
    end = parse_since(until, now, "--until") if until else None
    if start and end and start >= end:
        raise Refused("--until must be after --since")
    return start, end


def parse_states(names: list[str] | None, option: str = "--state") -> list[str] | None:
    """Two-letter codes of states and provinces; None for none."""
    try:
        return [parse_state(name) for name in names] if names else None
    except Refused as error:
        raise Refused(f"{option}: {error}") from error


def check_platform(platforms: Any, name: str | None) -> None:
    """Raises Refused for a platform that is not in `platforms`."""
    if name is not None and name not in platforms:
        from menuwatch.platforms.registry import unknown_platform  # not loaded for commands without platforms

        raise Refused(f"--platform {name}: {unknown_platform(name, platforms)}")


async def find_store_id(conn: Connection, store: str | None) -> int | None:
    """The id of the store of --store: name, slug, platform id or id; None for none. Raises Refused."""
    from menuwatch.stores import store as stores  # not loaded for commands without stores

    if store is None:
        return None
    return (await stores.resolve(conn, store)).id


async def find_store_ids(conn: Connection, stores: Sequence[str] | None) -> list[int] | None:
    """The ids of several stores; None for none."""
    return [store_id for name in stores or () if (store_id := await find_store_id(conn, name)) is not None] or None


def require_files(paths: Iterable[Path]) -> None:
    """Raises Refused for a file that does not exist, before a database is started for it."""
    for path in paths:
        if not path.exists():
            raise Refused(f"{path}: no such file")


_LONGEST = 200


def check_text(option: str, text: str | None) -> None:
    """Raises Refused for a text that the API refuses as well: an empty one would select everything."""
    if text is None:
        return
    if not text:
        raise Refused(f"{option} is empty: give a text, or omit it")
    if len(text) > _LONGEST:
        raise Refused(f"{option} has {len(text):,} characters: at most {_LONGEST} are allowed")
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise Refused(f"{option} {text!r} contains a character that the database cannot store")
