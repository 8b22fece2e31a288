"""One action on many proxies: an exact preview, then the action."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query, Request
from msgspec import Struct
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.core.errors import InvalidField
from menuwatch.dashboard import screen
from menuwatch.dashboard.pages.proxies import Status, describe, parse_filter
from menuwatch.db.pool import Connection
from menuwatch.proxies import bulk
from menuwatch.proxies.bulk import ProxyAction
from menuwatch.proxies.service import ProxyFilter
from menuwatch.proxies.tags import MOST_TAGS
from menuwatch.web.auth import require
from menuwatch.web.dependencies import ReadConn, WriteConn
from menuwatch.web.forms import FormInput

router = APIRouter(prefix="/proxies", dependencies=[require(Permission.PROXIES)])

SKIPPED = {
    "active": "already active",
    "untested": "untested: a worker tests them soon",
    "disabled": "disabled",
    "tagged": "already tagged",
    "untagged": "without this tag",
    "full": f"with {MOST_TAGS} tags already",
}
EFFECTS = {
    ProxyAction.TEST: "Workers send one request through each within minutes. A proxy that fails is deactivated and probed again.",
    ProxyAction.ENABLE: "Workers send one request through each within minutes. Each is active once its test succeeds.",
    ProxyAction.DISABLE: "No request uses them until they are enabled. Running requests finish.",
    ProxyAction.REMOVE: "Removes them with their scores. This cannot be undone.",
    ProxyAction.TAG: "",
    ProxyAction.UNTAG: "",
}
FORCED = "They are active immediately, without a test. Failures show up in tasks."

Ids = Annotated[list[Annotated[int, Query(ge=1, le=2**31 - 1)]], Query(alias="id", max_length=1000)]


class _Selection(Struct, frozen=True, kw_only=True):
    """What is done to which proxies: to those with these ids, or to all that the filters match."""

    action: ProxyAction
    ids: Sequence[int]
    status: Status
    q: str
    tag: str
    new_tag: str
    force: bool

    @property
    def where(self) -> ProxyFilter:
        # Selected proxies stay selected, whatever the filters match by now.
        return ProxyFilter(ids=self.ids) if self.ids else parse_filter(self.status, self.q, self.tag)

    @property
    def filters(self) -> dict[str, str]:
        given = {"status": self.status, "q": self.q, "tag": self.tag}
        return {name: value for name, value in given.items() if value}

    @property
    def list_path(self) -> str:
        """The list that the selection was made in."""
        return "/proxies" + (f"?{urlencode(self.filters)}" if self.filters else "")

    def preview_path(self, **changes: object) -> str:
        """The preview with other values."""
        given = {"act": self.action, **self.filters, "new_tag": self.new_tag, "force": int(self.force), **changes}
        chosen = [("id", str(one)) for one in self.ids] or [("all", "1")]
        return "/proxies/bulk?" + urlencode([*((k, str(v)) for k, v in given.items() if v), *chosen])

    @property
    def needs_tag(self) -> bool:
        return self.action in (ProxyAction.TAG, ProxyAction.UNTAG)

    @property
    def effect(self) -> str:
        return FORCED if self.force and self.action is ProxyAction.ENABLE else EFFECTS[self.action]


def _action(act: str) -> ProxyAction:
    try:
        return ProxyAction(act)
    except ValueError:
        names = ", ".join(ProxyAction)
        raise InvalidField("act", f"{act[:40]!r} is not an action for proxies: use one of {names}") from None


@router.get("/bulk")
async def preview(
    request: Request,
    conn: ReadConn,
    act: str = "",
    status: Status = "",
    q: Annotated[str, Query(max_length=200)] = "",
    tag: Annotated[str, Query(max_length=60)] = "",
    new_tag: Annotated[str, Query(max_length=200)] = "",
    ids: Ids = [],  # noqa: B006  # never written to
    all: bool = False,  # noqa: A002
    force: bool = False,
) -> Response:
    """Which proxies change, and which are skipped."""
    if act not in set(ProxyAction):
        return screen.flash_to(request, "/proxies", "Choose what to do with the proxies.", "warn")
    selection = _Selection(action=_action(act), ids=ids, status=status, q=q, tag=tag, new_tag=new_tag, force=force)
    if not ids and not all:
        return screen.flash_to(request, selection.list_path, "No proxies selected: tick some first.", "warn")
    return await _preview(request, conn, selection)


async def _preview(
    request: Request, conn: Connection, selection: _Selection, *, changed_from: int | None = None
) -> Response:
    form = FormInput({"new_tag": selection.new_tag})
    result = None
    if selection.new_tag.strip() or not selection.needs_tag:
        try:
            result = await bulk.apply(
                conn,
                selection.action,
                selection.where,
                dry_run=True,
                tag=selection.new_tag,
                force=selection.force,
            )
        except InvalidField as error:
            form.add_error("new_tag", str(error))
    context: dict[str, Any] = {
        "selection": selection,
        "form": form,
        "result": result,
        "skipped": {} if result is None else {SKIPPED.get(why, why): n for why, n in result.skipped.items()},
        "changed_from": changed_from,
    }
    return screen.render(request, "proxies/bulk.html", context, status=409 if changed_from is not None else None)


@router.post("/bulk")
async def apply(
    request: Request,
    conn: WriteConn,
    act: Annotated[str, Form()] = "",
    status: Annotated[Status, Form()] = "",
    q: Annotated[str, Form(max_length=200)] = "",
    tag: Annotated[str, Form(max_length=60)] = "",
    new_tag: Annotated[str, Form(max_length=200)] = "",
    ids: Annotated[Sequence[int], Form(alias="id", max_length=1000)] = (),
    all: Annotated[bool, Form()] = False,  # noqa: A002
    force: Annotated[bool, Form()] = False,
    reason: Annotated[str, Form(max_length=500)] = "",
    version: Annotated[str, Form(max_length=40)] = "",
    would: Annotated[int, Form(ge=0)] = 0,
) -> Response:
    """Acts. Where other proxies would change than in the preview, it shows a new preview instead."""
    selection = _Selection(action=_action(act), ids=ids, status=status, q=q, tag=tag, new_tag=new_tag, force=force)
    if not ids and not all:
        return screen.flash_to(request, selection.list_path, "No proxies selected: tick some first.", "warn")
    result = await bulk.apply(
        conn,
        selection.action,
        selection.where,
        tag=new_tag,
        reason=reason or f"disabled by {screen.principal(request).name}",
        force=force,
        version=version,
    )
    if result.version != version:
        return await _preview(request, conn, selection, changed_from=would)
    said = describe(selection.action, result, force=force)
    return screen.flash_to(request, selection.list_path, said, "good" if result.done else "warn")
