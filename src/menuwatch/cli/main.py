"""`menuwatch`: the command line. Each command lives in a module of its own; this one joins them and turns refusals into one line."""

from __future__ import annotations

import signal
import sys
from typing import Annotated

import psycopg
import typer
from psycopg_pool import PoolTimeout

import menuwatch
from menuwatch.cli import (
    alerts,
    analytics,
    coverage,
    demo,
    doctor,
    explain,
    export,
    history,
    hosts,
    images,
    payloads,
    products,
    profiles,
    proxies,
    rebuild,
    replay,
    run,
    schedules,
    stores,
    tasks,
    tokens,
    trail,
    users,
    verify,
    visitors,
    workers,
)
from menuwatch.cli.output import errors, plain
from menuwatch.core.errors import MenuwatchError, Refused
from menuwatch.db import address
from menuwatch.operations import audit

app = typer.Typer(
    name="menuwatch",
    help="Watches retail menus: finds stores, crawls their menus, keeps price, stock and potency history.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        sys.stdout.write(f"menuwatch {menuwatch.__version__}\n")
        raise typer.Exit


_BY_THEMSELVES = frozenset({"up", "server", "supervisor", "worker"})
"""Commands that go on by themselves: what they do is nobody's doing."""


@app.callback()
def options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Settings come from the environment: see docs/reference/settings.md."""
    if context.invoked_subcommand not in _BY_THEMSELVES:
        audit.act_as(audit.Actor.at_terminal())


app.command("demo")(demo.demo)
app.command("replay")(replay.replay)
app.command("rebuild")(rebuild.rebuild)
app.command("verify")(verify.verify)
app.command("coverage")(coverage.coverage)
app.command("products")(products.products)
app.command("changes")(products.changes)
app.command("export")(export.export)
app.command("profiles")(profiles.profiles)
app.command("up")(run.up)
app.command("server")(run.server)
app.command("supervisor")(run.supervisor)
app.command("worker")(run.worker)
app.command("migrate")(run.migrate)
app.command("doctor")(doctor.doctor)
app.command("explain")(explain.explain)
app.command("audit")(trail.audit)
app.add_typer(history.app, name="history")
app.add_typer(alerts.app, name="alerts")
app.add_typer(analytics.app, name="analytics")
app.add_typer(hosts.app, name="hosts")
app.add_typer(images.app, name="images")
app.add_typer(payloads.app, name="payloads")
app.add_typer(proxies.app, name="proxies")
app.add_typer(schedules.app, name="schedules")
app.add_typer(stores.app, name="stores")
app.add_typer(tasks.app, name="tasks")
app.add_typer(tokens.app, name="tokens")
app.add_typer(users.app, name="users")
app.add_typer(visitors.app, name="visitors")
app.add_typer(workers.app, name="workers")


def main() -> None:
    """Entry point. Exit codes: 0 done, 1 it ran and something failed, 2 refused, 130 interrupted."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        # As Ctrl-C: whatever was started is stopped again, the embedded database too. Server and worker stop more gently.
        signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        app()
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
