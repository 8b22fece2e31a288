"""API tokens: programs that act for a user. A token is shown once, when it is made; only its hash is kept."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Form, Path, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission, Principal
from menuwatch.dashboard import screen
from menuwatch.db.pool import Connection
from menuwatch.operations import accounts, tokens
from menuwatch.operations.refusals import NotFound, Unusable
from menuwatch.web import paging
from menuwatch.web.auth import allowed, own_account
from menuwatch.web.forms import Form as Filled
from menuwatch.web.system import Reading, Writing

router = APIRouter()

SHOWN = 50
Who = Annotated[Principal, own_account]
TokenPath = Annotated[int, Path(ge=1, le=2_147_483_647)]
SPANS = {"30d": "30 days", "90d": "90 days", "365d": "A year", "12h": "12 hours", "never": "Never"}
MEANING = {
    Permission.READ: "look at everything but accounts",
    Permission.TASKS: "make, retry and cancel tasks",
    Permission.SCHEDULES: "change schedules and run them",
    Permission.WORKERS: "stop, quiet and scale workers",
    Permission.STORES: "add and change stores",
    Permission.PAYLOADS: "replay and judge payloads",
    Permission.PROXIES: "add, test and take out proxies",
    Permission.HOSTS: "set budgets, pause and reset hosts",
    Permission.ALERTS: "make and change alert rules",
    Permission.IMAGES: "download images anew",
    Permission.EXPORT: "export products and history",
    Permission.ACCOUNTS: "users, tokens of others, the audit",
}
"""What each scope lets a token do."""


@router.get("/account/tokens")
async def own(request: Request, conn: Reading, who: Who, cursor: str = "") -> Response:
    """One's own, and the form for another."""
    return await _own(request, conn, who, Filled({"expires": "90d"}), cursor=cursor)


async def paged(request: Request, conn: Connection, cursor: str, *, user_id: int | None = None) -> dict[str, Any]:
    """A page of tokens by number, of one user or of all, as templates take it."""
    after = screen.place(request, cursor, tuple[int])
    found = await tokens.page(conn, user_id=user_id, after=after[0] if after else 0, limit=SHOWN + 1)
    shown = found[:SHOWN]
    more = paging.encode(shown[-1].id) if len(found) > SHOWN else None
    return {
        "tokens": shown,
        "next_href": screen.query(request, cursor=more) if more else None,
        "first_href": screen.query(request) if after else None,
    }


async def _own(
    request: Request, conn: Connection, who: Principal, form: Filled, *, cursor: str = "", status: int = 200
) -> Response:
    context = {
        "form": form,
        "chosen": set(form.value("scopes").split()),
        **await paged(request, conn, cursor, user_id=who.user_id),
        "scopes": [(one, MEANING[one]) for one in Permission if who.may(one)],
        "spans": list(SPANS.items()),
    }
    return screen.show(request, "tokens/own.html", context, status=status)


@router.post("/account/tokens")
async def create(
    request: Request,
    conn: Writing,
    who: Who,
    name: Annotated[str, Form(max_length=400)] = "",
    scope: Annotated[list[str], Form(max_length=50)] = [],  # noqa: B006
    expires: Annotated[str, Form(max_length=20)] = "90d",
) -> Response:
    """Makes one; its text is shown in this answer and never again."""
    form = Filled({"name": name, "expires": expires, "scopes": " ".join(scope)})
    unknown = [one for one in scope if one not in list(Permission)]
    if unknown:
        form.refuse("scopes", f"{unknown[0][:40]!r} is no scope")
    span = form.one_of("expires", SPANS)
    if form.ok:
        now = datetime.now(UTC)
        ends = None if span in (None, "never") else now + tokens.parse_span(span)
        assert who.user_id is not None, "every principal of ours is a user"
        try:
            async with conn.transaction():
                owner = await accounts.one(conn, who.user_id)
                scopes = [Permission(one) for one in scope]
                made, text = await tokens.create(conn, owner, name, scopes, expires_at=ends, now=now, by=who)
        except Unusable as error:
            form.refuse(error.field, str(error))
        else:
            return screen.show(request, "tokens/once.html", {"token": made, "text": text})
    return await _own(request, conn, who, form, status=422)


@router.post("/account/tokens/{token_id}/revoke")
async def revoke(request: Request, conn: Writing, who: Who, token_id: TokenPath) -> Response:
    """It lets nobody in any more."""
    found = await tokens.one(conn, token_id)
    if found.user_id != who.user_id and not who.may(Permission.ACCOUNTS):
        # Whether others have a token of that number is nobody's business.
        raise NotFound(f"token {token_id} does not exist")
    await tokens.revoke(conn, token_id)
    return screen.back(request, screen.came_from(request), f"Token {token_id} ({found.name}) is revoked.")


@router.get("/users/tokens", dependencies=[allowed(Permission.ACCOUNTS)])
async def everybodys(request: Request, conn: Reading, cursor: str = "") -> Response:
    """Those of everybody."""
    return screen.show(request, "tokens/all.html", await paged(request, conn, cursor), live="accounts")
