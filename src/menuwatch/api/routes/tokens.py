"""Tokens: one's own, and for admins those of others."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from menuwatch.accounts.model import Permission, Principal
from menuwatch.api import paging
from menuwatch.api.answers import answer, page
from menuwatch.api.schemas.accounts import MadeToken, NewToken, Token, TokenPage, TokenPath, TokenQuery
from menuwatch.operations import accounts, tokens
from menuwatch.operations.refusals import NotFound
from menuwatch.web.auth import NotAllowed, own_account
from menuwatch.web.system import Reading, Writing

router = APIRouter(prefix="/api/tokens", tags=["accounts"], dependencies=[own_account])

Who = Annotated[Principal, own_account]


@router.get("", response_model=TokenPage, summary="List tokens")
async def list_tokens(request: Request, conn: Reading, who: Who, query: Annotated[TokenQuery, Query()]) -> Response:
    """Yours, by number, also those that ended; with `all` those of everybody."""
    if query.all and not who.may(Permission.ACCOUNTS):
        raise NotAllowed(Permission.ACCOUNTS)
    mark = paging.mark("tokens", query.all, None if query.all else who.user_id)
    after = paging.decode(query.cursor, mark, tuple[int])[0] if query.cursor is not None else 0
    found = await tokens.page(conn, user_id=None if query.all else who.user_id, after=after, limit=query.limit + 1)
    shown = found[: query.limit]
    return page(request, shown, paging.encode(mark, shown[-1].id) if len(found) > query.limit else None)


@router.post("", response_model=MadeToken, status_code=201, summary="Make a token")
async def make_token(request: Request, conn: Writing, who: Who, new: NewToken) -> Response:
    """For yourself, with scopes that you have. It is shown in this answer and never again."""
    assert who.user_id is not None, "every principal of ours is a user"
    owner = await accounts.one(conn, who.user_id)
    now = datetime.now(UTC)
    made, text = await tokens.create(conn, owner, new.name, new.scopes, expires_at=new.expires_at, now=now, by=who)
    headers = {"Cache-Control": "no-store", "Location": f"/api/tokens/{made.id}"}
    return answer(request, {"token": made, "secret": text}, status=201, headers=headers)


@router.get("/{token_id}", response_model=Token, summary="One token")
async def get_token(request: Request, conn: Reading, who: Who, token_id: TokenPath) -> Response:
    """One token, without its secret."""
    found = await tokens.one(conn, token_id)
    _check_theirs(found.user_id, who, token_id)
    return answer(request, found)


@router.delete("/{token_id}", response_model=Token, summary="Revoke a token")
async def revoke_token(request: Request, conn: Writing, who: Who, token_id: TokenPath) -> Response:
    """It lets nobody in any more, from the next request on."""
    _check_theirs((await tokens.one(conn, token_id)).user_id, who, token_id)
    return answer(request, await tokens.revoke(conn, token_id))


def _check_theirs(owner: int, who: Principal, token_id: int) -> None:
    """Whether others have a token of that number is nobody's business."""
    if owner != who.user_id and not who.may(Permission.ACCOUNTS):
        raise NotFound(f"token {token_id} does not exist")
