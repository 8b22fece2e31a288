"""One action on many proxies, chosen by ids or by a filter, with an exact preview."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from hashlib import blake2b
from typing import Annotated

from msgspec import Struct, structs

from menuwatch.accounts import audit
from menuwatch.core.backoff import Backoff
from menuwatch.core.errors import InvalidField
from menuwatch.core.shapes import doc
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_all, fetch_structs
from menuwatch.proxies import store
from menuwatch.proxies.model import TestFailure
from menuwatch.proxies.service import DISABLED, ProxyFilter, Status
from menuwatch.proxies.tags import MOST_TAGS, parse_tag

_q = sql.load(__package__)

IDS_MAX = 10_000
"""Most ids of a selection; a filter may match more."""
_WAITS = TestFailure.untested("a worker tests it within minutes")
_NOW = Backoff(base=0.0)


class ProxyAction(StrEnum):
    """What is done to many proxies."""

    TEST = "test"
    ENABLE = "enable"
    DISABLE = "disable"
    REMOVE = "remove"
    TAG = "tag"
    UNTAG = "untag"


class SelectedProxy(Struct, frozen=True, kw_only=True):
    """What decides whether an action changes a proxy."""

    id: int
    status: Status
    tags: list[str]


class ProxyBulkResult(Struct, frozen=True, kw_only=True):
    """How many proxies an action changes, or changed."""

    dry_run: Annotated[bool, doc("Whether this is a preview: nothing was changed.")]
    matched: Annotated[int, doc("Selected proxies that exist.")]
    would: Annotated[int, doc("Proxies that the action changes.")]
    done: Annotated[int, doc("Proxies that were changed; 0 for a preview.")]
    skipped: Annotated[
        dict[str, int],
        doc(
            "Number of proxies that stay as they are, by reason: their status, `tagged`, `untagged`, or `full` (ten tags already)."
        ),
    ]
    by_status: Annotated[dict[str, int], doc("Selected proxies by their status before the action.")]
    ids: Annotated[list[int], doc("Ids of the proxies that the action changes.")]
    version: Annotated[str, doc("Changes if the action would change other proxies.")]


async def select_proxies(conn: Connection, where: ProxyFilter) -> list[SelectedProxy]:
    """Matching proxies, by id."""
    return await fetch_structs(conn, SelectedProxy, _q.select_proxies, where.values(), prepare=False)


async def count_proxies(conn: Connection, where: ProxyFilter) -> int:
    """Number of matching proxies."""
    (row,) = await fetch_all(conn, _q.count_selected, where.values(), prepare=False)
    return int(row["proxies"])


async def apply(
    conn: Connection,
    action: ProxyAction,
    where: ProxyFilter,
    *,
    dry_run: bool = False,
    tag: str | None = None,
    reason: str | None = None,
    force: bool = False,
    version: str | None = None,
) -> ProxyBulkResult:
    """Do the action to all matching proxies, in the caller's transaction, or with `dry_run` count them.

    Workers make the tests of `test` and `enable`: one that fails is inactive, and probed again. `force` enables without a test.
    `reason` is that of `disable`; `tag` is needed for `tag` and `untag`, and else ignored. If `version` is not that of the result,
    other proxies would change than in that preview: nothing is done, and `done` is 0. Raises InvalidField for an invalid `tag`.
    """
    if action not in (ProxyAction.TAG, ProxyAction.UNTAG):
        tag = None
    else:
        if not (tag or "").strip():
            raise InvalidField("tag", "required: enter a tag, e.g. provider-a")
        tag = parse_tag(tag or "")
    skip = _rule(action, tag, force=force)
    selected = await select_proxies(conn, where)
    if not dry_run:
        await store.lock(conn, [proxy.id for proxy in selected])
        # A change that was made while waiting for the locks counts.
        selected = await select_proxies(conn, replace(where, ids=[proxy.id for proxy in selected]))
    skipped = Counter(why for proxy in selected if (why := skip(proxy)) is not None)
    ids = [proxy.id for proxy in selected if skip(proxy) is None]
    plan = ProxyBulkResult(
        dry_run=dry_run,
        matched=len(selected),
        would=len(ids),
        done=0,
        skipped=dict(skipped),
        by_status=dict(Counter(proxy.status for proxy in selected)),
        ids=ids,
        version=_version(ids),
    )
    if dry_run or not ids or version not in (None, plan.version):
        return plan
    await _do(conn, action, ids, tag=tag or "", reason=reason, force=force)
    return structs.replace(plan, done=len(ids))


def _rule(action: ProxyAction, tag: str | None, *, force: bool) -> Callable[[SelectedProxy], str | None]:
    """Why the action passes a proxy over; None if it changes it."""

    def skip(proxy: SelectedProxy) -> str | None:
        match action:
            case ProxyAction.TEST:
                return "disabled" if proxy.status == "disabled" else None
            case ProxyAction.ENABLE:
                waits = proxy.status == "untested" and not force
                return proxy.status if proxy.status == "active" or waits else None
            case ProxyAction.DISABLE:
                return "disabled" if proxy.status == "disabled" else None
            case ProxyAction.TAG:
                return "tagged" if tag in proxy.tags else "full" if len(proxy.tags) >= MOST_TAGS else None
            case ProxyAction.UNTAG:
                return None if tag in proxy.tags else "untagged"
            case ProxyAction.REMOVE:
                return None

    return skip


def _version(ids: Sequence[int]) -> str:
    return blake2b(",".join(map(str, ids)).encode(), digest_size=8).hexdigest()


async def _do(
    conn: Connection, action: ProxyAction, ids: Sequence[int], *, tag: str, reason: str | None, force: bool
) -> None:
    details: dict[str, object] = {}
    match action:
        case ProxyAction.TEST:
            await store.retest(conn, ids)
        case ProxyAction.ENABLE:
            await store.enable(conn, ids, failed={} if force else dict.fromkeys(ids, _WAITS), probing=_NOW)
            details["forced"] = force
        case ProxyAction.DISABLE:
            details["reason"] = (reason or "").strip() or DISABLED
            await store.disable(conn, ids, str(details["reason"]))
        case ProxyAction.REMOVE:
            await store.remove(conn, ids)
        case ProxyAction.TAG:
            await store.add_tag(conn, ids, tag)
        case ProxyAction.UNTAG:
            await store.remove_tag(conn, ids, tag)
    if tag:
        details["tag"] = tag
    await audit.record(conn, _AUDITED[action], None, proxies=list(ids), **details)


_AUDITED = {
    ProxyAction.TEST: "proxies_tested",
    ProxyAction.ENABLE: "proxies_enabled",
    ProxyAction.DISABLE: "proxies_disabled",
    ProxyAction.REMOVE: "proxies_removed",
    ProxyAction.TAG: "proxies_tagged",
    ProxyAction.UNTAG: "proxies_untagged",
}
