"""API tokens: programs that act for a user. A token is shown once, when it is made; only its hash is kept."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, Path, Request
from starlette.responses import Response

from menuwatch.accounts import tokens, users
from menuwatch.accounts.model import Permission, Principal
from menuwatch.core.errors import InvalidField
from menuwatch.dashboard import screen
from menuwatch.db.clock import database_now
from menuwatch.db.pool import Connection
from menuwatch.web.auth import own_account, require
from menuwatch.web.dependencies import ReadConn, WriteConn
from menuwatch.web.forms import FormInput

router = APIRouter()

SHOWN = 50
Who = Annotated[Principal, own_account]
TokenPath = Annotated[int, Path(ge=1, le=2_147_483_647)]
SPANS = {"30d": "30 days", "90d": "90 days", "365d": "A year", "12h": "12 hours", "never": "Never"}
MEANING = {
    Permission.READ: "read everything except accounts",
    Permission.TASKS: "create, retry and cancel tasks",
    Permission.SCHEDULES: "change and run schedules",
    Permission.WORKERS: "pause, decommission and scale workers",
    Permission.RUN_TASKS: "work on tasks as a worker",
    Permission.STORES: "add and change stores",
    Permission.PAYLOADS: "replay and release payloads",
    Permission.PROXIES: "add, test and disable proxies",
    Permission.HOSTS: "set limits, pause and reset hosts",
    Permission.ALERTS: "create and change alert rules",
    Permission.MATCHING: "correct matched products and brands",
    Permission.IMAGES: "retry image downloads",
    Permission.EXPORT: "export products and history",
    Permission.ACCOUNTS: "users, all tokens, audit log",
}
"""What each scope allows."""


@router.get("/account/tokens")
async def own(request: Request, conn: ReadConn, who: Who, cursor: str = "") -> Response:
    """One's own, and the form for another."""
    return await _own(request, conn, who, FormInput({"expires": "90d"}), cursor=cursor)


async def paged(request: Request, conn: Connection, cursor: str, *, user_id: int | None = None) -> dict[str, Any]:
    """A page of tokens by number, of one user or of all, as templates take it."""
    after = screen.parse_number_cursor(request, cursor)
    found = await tokens.list_tokens(conn, user_id=user_id, after=after or 0, limit=SHOWN + 1)
    shown, links = screen.paginate(request, found, SHOWN, "id")
    return {"tokens": shown, **links}


async def _own(
    request: Request, conn: Connection, who: Principal, form: FormInput, *, cursor: str = "", status: int = 200
) -> Response:
    context = {
        "form": form,
        "chosen": set(form.value("scopes").split()),
        **await paged(request, conn, cursor, user_id=who.user_id),
        "scopes": [(one, MEANING[one]) for one in Permission if who.may(one)],
        "spans": list(SPANS.items()),
    }
    return screen.render(request, "tokens/own.html", context, status=status)


@router.post("/account/tokens")
async def create(
    request: Request,
    conn: WriteConn,
    who: Who,
    name: Annotated[str, Form(max_length=400)] = "",
    scope: Annotated[list[str], Form(max_length=50)] = [],  # noqa: B006
    expires: Annotated[str, Form(max_length=20)] = "90d",
) -> Response:
    """Makes one; its text is shown in this answer and never again."""
    form = FormInput({"name": name, "expires": expires, "scopes": " ".join(scope)})
    unknown = [one for one in scope if one not in list(Permission)]
    if unknown:
        form.add_error("scopes", f"{unknown[0][:40]!r} is not a scope")
    span = form.parse_choice("expires", SPANS)
    if form.ok:
        now = await database_now(conn)
        ends = None if span in (None, "never") else now + tokens.parse_span(span)
        assert who.user_id is not None, "every principal of ours is a user"
        try:
            async with conn.transaction():
                owner = await users.get_user(conn, who.user_id)
                scopes = [Permission(one) for one in scope]
                made, text = await tokens.create(conn, owner, name, scopes, expires_at=ends, now=now, by=who)
        except InvalidField as error:
            form.add_error(error.field, str(error))
        else:
            return screen.render(request, "tokens/once.html", {"token": made, "text": text})
    return await _own(request, conn, who, form, status=422)


@router.post("/account/tokens/{token_id}/revoke")
async def revoke(request: Request, conn: WriteConn, who: Who, token_id: TokenPath) -> Response:
    """Revokes a token."""
    token = await tokens.revoke(conn, token_id, by=who)
    return screen.flash_back(request, f"Token {token_id} ({token.name}) revoked.")


@router.get("/users/tokens", dependencies=[require(Permission.ACCOUNTS)])
async def everybodys(request: Request, conn: ReadConn, cursor: str = "") -> Response:
    """Tokens of all users."""
    return screen.render(request, "tokens/all.html", await paged(request, conn, cursor), live="accounts")
