"""`menuwatch`: the command line. Each command lives in a module of its own; this one joins them and turns refusals into one line."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import typer
from typer import completion

import menuwatch
from menuwatch.cli.options import Command, Group, Shell, spread
from menuwatch.cli.output import notice, plain
from menuwatch.core.errors import MenuwatchError, Refused


def _version(value: bool) -> None:
    if value:
        sys.stdout.write(f"menuwatch {menuwatch.__version__}\n")
        raise typer.Exit


_SERVICES = frozenset({"up", "server", "supervisor", "worker"})
"""Their actions have no human actor."""


def options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    install_completion: Annotated[
        Shell | None,
        typer.Option(
            callback=completion.install_callback,
            is_eager=True,
            metavar="SHELL",
            help="Install completion for bash, zsh, fish or powershell.",
        ),
    ] = None,
    show_completion: Annotated[
        Shell | None,
        typer.Option(
            callback=completion.show_callback,
            is_eager=True,
            metavar="SHELL",
            help="Print the completion script of a shell.",
        ),
    ] = None,
) -> None:
    """Settings come from the environment: see docs/reference/settings.md."""
    if context.invoked_subcommand not in _SERVICES:
        from menuwatch.accounts import audit  # not loaded for help, the version and completion

        audit.set_actor(audit.Actor.at_terminal())


_COLLECT_AFTER = 20_000
"""New objects after which Python looks for garbage in commands that end soon; its default of 700 slows imports down."""
_COLLECT_AFTER_START = 1_000_000
"""The same for services until they have started: three times as many as a server has then, so that it does not look before."""


class Entry(NamedTuple):
    """A command or group in the list of commands."""

    panel: str
    summary: str
    module: str | None = None
    """Module with a function of the command's name; for a group the module with its `app`, None: the one of the group's name."""
    group: bool = False
    """Whether `module` is that of a group."""


_SETUP, _RUN, _DATA, _OPERATE, _ADMIN = "Setup", "Run", "Data", "Operate", "Admin"

COMMANDS = {
    "demo": Entry(_SETUP, "Crawl a simulated market and show its changes.", "demo"),
    "doctor": Entry(_SETUP, "Check this installation and suggest fixes.", "doctor"),
    "config": Entry(_SETUP, "List settings with their values and sources.", "config"),
    "stores": Entry(_SETUP, "Manage stores."),
    "locations": Entry(_SETUP, "List shops across platforms and licences; correct links."),
    "licences": Entry(_SETUP, "Import and list licence registers."),
    "platforms": Entry(_SETUP, "List, add and check menu platforms."),
    "proxies": Entry(_SETUP, "Manage the proxies that all requests go through."),
    "discovery": Entry(_SETUP, "Choose the states in which stores are discovered.", "discovery"),
    "schedules": Entry(_SETUP, "Manage recurring schedules."),
    "migrate-legacy": Entry(_SETUP, "Migrate from the legacy system."),
    "up": Entry(_RUN, "Run server and workers on this machine.", "run"),
    "server": Entry(_RUN, "Run the server: dashboard, public site, API, schedules.", "run"),
    "worker": Entry(_RUN, "Run tasks until stopped.", "run"),
    "supervisor": Entry(_RUN, "Run the desired number of workers.", "run"),
    "mcp": Entry(_RUN, "Serve an AI client on standard input and output.", "mcp"),
    "products": Entry(_DATA, "List products with price, stock and potency.", "products"),
    "changes": Entry(_DATA, "List price and stock changes, newest first.", "products"),
    "history": Entry(_DATA, "Show a product's history; manage packed history."),
    "analytics": Entry(_DATA, "Show analytics across all stores."),
    "quality": Entry(_DATA, "Show what is unusual in menus; data quality of stores."),
    "match": Entry(_DATA, "Match products across stores and platforms.", "matching", group=True),
    "export": Entry(_DATA, "Export products, snapshots or changes to a file.", "export"),
    "publish": Entry(_DATA, "Publish an open dataset: Parquet, description, catalog.", "publish"),
    "replay": Entry(_DATA, "Import recorded responses.", "replay"),
    "payloads": Entry(_DATA, "Manage archived responses and quarantined menus."),
    "coverage": Entry(_DATA, "Report which fields of a payload are used.", "coverage"),
    "images": Entry(_DATA, "Manage product images and brand logos."),
    "crawl": Entry(_DATA, "Manage search crawls of a shop, by keyword."),
    "top": Entry(_OPERATE, "Watch workers, running tasks and the queue.", "top"),
    "tasks": Entry(_OPERATE, "Inspect and control tasks."),
    "explain": Entry(_OPERATE, "Explain why a task is in its state.", "explain"),
    "workers": Entry(_OPERATE, "List, scale, pause and decommission workers."),
    "hosts": Entry(_OPERATE, "Manage target hosts: limits, pause, circuit breaker."),
    "alerts": Entry(_OPERATE, "Manage alert rules and channels."),
    "profiles": Entry(_OPERATE, "List browser profiles with their shares of requests.", "profiles"),
    "visitors": Entry(_OPERATE, "Show visitor statistics of the public site."),
    "views": Entry(_OPERATE, "Manage saved views of dashboard screens."),
    "users": Entry(_ADMIN, "Manage users and their roles."),
    "tokens": Entry(_ADMIN, "Manage API tokens."),
    "audit": Entry(_ADMIN, "Show the audit log, newest first.", "audit"),
    "backup": Entry(_ADMIN, "Back up the installation while it runs.", "backup"),
    "restore": Entry(_ADMIN, "Restore a backup into an empty installation.", "backup"),
    "migrate": Entry(_ADMIN, "Migrate the database to this version.", "run"),
    "storage": Entry(_ADMIN, "Move stored files between a folder and a bucket."),
    "verify": Entry(_ADMIN, "Compare the archive with the database.", "verify"),
    "rebuild": Entry(_ADMIN, "Rebuild products and history from the archive.", "rebuild"),
}
"""All commands, in the order of the help. The list of commands is printed from here, without importing them."""


@contextlib.contextmanager
def _plain_errors() -> Iterator[None]:
    """Removes control characters from messages that quote arguments."""
    try:
        yield
    except typer.TyperException as error:
        error.message = plain(error.message)
        raise


class _Commands(Group):
    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        with _plain_errors():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        with _plain_errors():
            return super().invoke(ctx)


@functools.cache
def _program(names: tuple[str, ...], *, loaded: bool = True) -> typer.Typer:
    """The program with these commands; `loaded` False: with their names and summaries only."""
    program = typer.Typer(
        name="menuwatch",
        cls=_Commands,
        help="Monitor retail menus: discover stores, crawl their menus, and keep price, stock and potency history.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    program.callback()(options)
    for name in names:
        panel, summary, module, group = COMMANDS[name]
        place: dict[str, Any] = {"name": name, "short_help": summary, "rich_help_panel": panel}
        if not loaded:
            program.command(**place)(lambda: None)
        elif group or module is None:
            program.add_typer(_load(module or name).app, help=summary, **place)
        else:
            program.command(cls=Command, **place)(spread(getattr(_load(module), name)))
    return program


def _load(module: str) -> Any:
    return importlib.import_module(f"menuwatch.cli.{module.replace('-', '_')}")


def __getattr__(name: str) -> typer.Typer:
    """`app` has all commands; built lazily, so that running one command does not import all of them."""
    if name == "app":
        return _program(tuple(COMMANDS))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def select_program(arguments: Sequence[str]) -> typer.Typer:
    """The program with only the requested command; without one, all of them by name and summary."""
    if arguments and arguments[0] in COMMANDS:
        return _program((arguments[0],))
    return _program(tuple(COMMANDS), loaded=False)


def _show_failure(error: Exception) -> None:
    import psycopg  # loaded by every command that can raise its errors, not by the others
    from psycopg_pool import PoolTimeout

    from menuwatch.db import address

    if not isinstance(error, psycopg.Error | PoolTimeout):
        show_fault(error)
        return
    unreachable = not isinstance(error, psycopg.Error) or address.unreachable(error)
    what = "the database is unreachable" if unreachable else "the database refused the connection"
    notice(f"menuwatch: {what}: {address.safe_reason(error)}")


def show_fault(error: Exception) -> None:
    """Prints the traceback of an internal error; its message may quote untrusted text."""
    sys.stderr.write(plain("".join(traceback.format_exception(error)), lines=True))


def main() -> None:
    """Entry point. Exit codes: 0 done, 1 it ran and something failed, 2 refused, 130 interrupted."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as `nohup` sets SIGHUP
            signal.signal(number, _interrupt)
    completion.get_completion_inspect_parameters()  # registers the shells
    arguments = _typed(os.environ) or sys.argv[1:]
    gc.set_threshold(_COLLECT_AFTER_START if _SERVICES.intersection(arguments[:1]) else _COLLECT_AFTER)
    try:
        select_program(arguments)(prog_name="menuwatch")
    except Refused as error:
        notice(f"menuwatch: {error}")
        sys.exit(2)
    except MenuwatchError as error:
        notice(f"menuwatch: {error}")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        _show_failure(error)
        sys.exit(1)


def _interrupt(*_: object) -> None:
    """As Ctrl-C: everything is stopped again, the embedded database too. Server and worker stop gracefully."""
    # A shell script ignores interrupts for commands that it starts with `&`.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.raise_signal(signal.SIGINT)


def _typed(env: Mapping[str, str]) -> list[str]:
    """The words before the one that a shell wants completed; empty if this is no completion."""
    line = env.get("COMP_WORDS") or env.get("_TYPER_COMPLETE_ARGS") or ""
    words = line.split()[1:] if "_MENUWATCH_COMPLETE" in env else []
    return words if len(words) > 1 or line[-1:].isspace() else []


if __name__ == "__main__":
    main()
