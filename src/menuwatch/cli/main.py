"""`menuwatch`: the command line. Each command lives in a module of its own; this one joins them and turns refusals into one line."""

from __future__ import annotations

import functools
import importlib
import signal
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated

import psycopg
import typer
from psycopg_pool import PoolTimeout

import menuwatch
from menuwatch.cli.output import errors, plain
from menuwatch.core.errors import MenuwatchError, Refused
from menuwatch.db import address
from menuwatch.operations import audit


def _version(value: bool) -> None:
    if value:
        sys.stdout.write(f"menuwatch {menuwatch.__version__}\n")
        raise typer.Exit


_BY_THEMSELVES = frozenset({"up", "server", "supervisor", "worker"})
"""Commands that go on by themselves: what they do is nobody's doing."""


def options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Settings come from the environment: see docs/reference/settings.md."""
    if context.invoked_subcommand not in _BY_THEMSELVES:
        audit.act_as(audit.Actor.at_terminal())


COMMANDS = {
    "demo": "demo",
    "replay": "replay",
    "rebuild": "rebuild",
    "verify": "verify",
    "coverage": "coverage",
    "products": "products",
    "changes": "products",
    "export": "export",
    "profiles": "profiles",
    "up": "run",
    "server": "run",
    "supervisor": "run",
    "worker": "run",
    "migrate": "run",
    "doctor": "doctor",
    "backup": "backup",
    "restore": "backup",
    "explain": "explain",
    "audit": "trail",
}
"""By its name the module of each command, in which a function is called so; in the order of the help."""

GROUPS = (
    "history",
    "alerts",
    "analytics",
    "crawl",
    "hosts",
    "images",
    "migrate-legacy",
    "payloads",
    "proxies",
    "schedules",
    "stores",
    "tasks",
    "tokens",
    "users",
    "visitors",
    "workers",
)
"""Modules that hold several commands each, in their `app`."""


def _joined(names: Iterable[str]) -> typer.Typer:
    """These commands as one program."""
    made = typer.Typer(
        name="menuwatch",
        help="Watches retail menus: finds stores, crawls their menus, keeps price, stock and potency history.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(options)
    for name in names:
        module = importlib.import_module(f"menuwatch.cli.{COMMANDS.get(name, name).replace('-', '_')}")
        if name in COMMANDS:
            made.command(name)(getattr(module, name))
        else:
            made.add_typer(module.app, name=name)
    return made


@functools.cache
def _whole() -> typer.Typer:
    return _joined([*COMMANDS, *GROUPS])


def __getattr__(name: str) -> typer.Typer:
    """`app` is all commands. Whoever asks for one does not wait until all of them are loaded."""
    if name == "app":
        return _whole()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _asked(arguments: Sequence[str]) -> typer.Typer:
    """The command that is asked for, alone; all of them where help is, or something that there is not."""
    known = arguments and (arguments[0] in COMMANDS or arguments[0] in GROUPS)
    return _joined(arguments[:1]) if known else _whole()


def main() -> None:
    """Entry point. Exit codes: 0 done, 1 it ran and something failed, 2 refused, 130 interrupted."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        # As Ctrl-C: whatever was started is stopped again, the embedded database too. Server and worker stop more gently.
        signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        _asked(sys.argv[1:])()
    except Refused as error:
        errors.print(f"menuwatch: {plain(str(error))}", markup=False, soft_wrap=True)
        sys.exit(2)
    except (psycopg.Error, PoolTimeout) as error:
        away = not isinstance(error, psycopg.Error) or address.unreachable(error)
        what = "the database cannot be reached" if away else "the database refused"
        errors.print(f"menuwatch: {what}: {address.safe_reason(error)}", markup=False, soft_wrap=True)
        sys.exit(1)
    except MenuwatchError as error:
        errors.print(f"menuwatch: {plain(str(error))}", markup=False, soft_wrap=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
