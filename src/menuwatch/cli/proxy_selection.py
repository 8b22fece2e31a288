"""Which proxies a command acts on, by id or by filter, with an exact preview and confirmation."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from menuwatch.cli.options import DryRunOption, Output, YesOption, check_text
from menuwatch.cli.output import echo, print_json
from menuwatch.cli.startup import in_transaction, read
from menuwatch.core.errors import Refused
from menuwatch.core.format import pluralize
from menuwatch.proxies import bulk
from menuwatch.proxies.bulk import ProxyAction, ProxyBulkResult
from menuwatch.proxies.service import ProxyFilter, Status

StatusOption = Annotated[
    Status | None, typer.Option("--status", help="Only this status; failing: active, with consecutive failures.")
]
TagOption = Annotated[str | None, typer.Option("--tag", help="Only proxies with this tag.")]
SearchOption = Annotated[str | None, typer.Option("--search", help="Only with this text in address or location.")]

_DONE = {
    ProxyAction.TEST: "tested",
    ProxyAction.ENABLE: "enabled",
    ProxyAction.DISABLE: "disabled",
    ProxyAction.REMOVE: "removed",
    ProxyAction.TAG: "tagged",
    ProxyAction.UNTAG: "untagged",
}


@dataclass(frozen=True, slots=True)
class ProxySelection:
    """Proxies to act on: a filter or all, with confirmation; raises Refused for a text that cannot be searched for."""

    status: StatusOption = None
    tag: TagOption = None
    search: SearchOption = None
    everything: Annotated[bool, typer.Option("--all", help="Select all proxies.")] = False
    dry_run: DryRunOption = False
    yes: YesOption = False

    def __post_init__(self) -> None:
        check_text("--search", self.search)
        check_text("--tag", self.tag)

    @property
    def is_filter(self) -> bool:
        return any(value is not None for value in (self.status, self.tag, self.search))


def select_proxies(
    action: ProxyAction,
    numbers: Sequence[int] | None,
    selection: ProxySelection,
    out: Output,
    *,
    force: bool = False,
    tag: str | None = None,
) -> list[int]:
    """Ids of the proxies to change. With ids they are as given; with a filter those that the action would change, after
    confirmation. Raises Refused if it is unclear which proxies are meant, and Exit after a dry run or if the user declined."""
    if numbers and (selection.is_filter or selection.everything):
        raise Refused("proxy ids and filters are mutually exclusive")
    if not numbers and selection.is_filter == selection.everything:
        raise Refused(f"{action} which proxies? Give ids, a filter (--status, --tag, --search), or --all")
    if numbers and not selection.dry_run:
        return list(dict.fromkeys(numbers))
    where = ProxyFilter(
        ids=numbers or None,
        status=selection.status,
        tag=None if selection.tag is None else selection.tag.strip().lower(),
        q=selection.search,
    )
    plan = read(lambda _, conn: bulk.apply(conn, action, where, dry_run=True, force=force, tag=tag))
    if numbers and (missing := len(set(numbers)) - plan.matched):
        raise Refused(f"{pluralize(missing, 'proxy does', 'proxies do')} not exist: see `menuwatch proxies list`")
    if selection.dry_run or plan.would == 0:
        _print_plan(action, plan, out)
        raise typer.Exit
    if not selection.yes and action is not ProxyAction.TEST:
        question = f"{action.capitalize()} {pluralize(plan.would, 'proxy', 'proxies')}?"
        if not sys.stdin.isatty():
            raise Refused(f"{question} No TTY for confirmation; pass --yes.")
        typer.confirm(question, err=True, abort=True)
    return plan.ids


def _print_plan(action: ProxyAction, plan: ProxyBulkResult, out: Output) -> None:
    if not out.is_table:
        print_json(plan)
        return
    skipped = ", ".join(f"{n:,} {why}" for why, n in plan.skipped.items())
    echo(
        f"{pluralize(plan.would, 'proxy', 'proxies')} would be {_DONE[action]}"
        + (f"; skipped: {skipped}." if skipped else ".")
    )


def change_tag(
    action: ProxyAction, tag: str, numbers: Sequence[int] | None, selection: ProxySelection, out: Output
) -> None:
    """Adds or removes a tag, and prints how many proxies were changed."""
    ids = select_proxies(action, numbers, selection, out, tag=tag)
    result = in_transaction(lambda _, conn: bulk.apply(conn, action, ProxyFilter(ids=ids), tag=tag))
    if missing := len(ids) - result.matched:
        raise Refused(f"{pluralize(missing, 'proxy does', 'proxies do')} not exist: see `menuwatch proxies list`")
    if not out.is_table:
        print_json(result)
        return
    skipped = ", ".join(f"{n:,} {why}" for why, n in result.skipped.items())
    echo(
        f"{pluralize(result.done, 'proxy', 'proxies')} {_DONE[action]}" + (f"; skipped: {skipped}." if skipped else ".")
    )
