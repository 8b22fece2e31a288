"""API tokens: your own, and for admins those of all users."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from msgspec import Struct
from pydantic import Field

from menuwatch.accounts import tokens, users
from menuwatch.accounts.model import Permission, Principal, Token
from menuwatch.api.inputs import INTEGER_MAX, Input, Instant, PageQuery, Text
from menuwatch.api.paging import Keyset
from menuwatch.api.responses import answer, returns, returns_page
from menuwatch.core.shapes import doc
from menuwatch.db.clock import database_now
from menuwatch.web.auth import NotAllowed, own_account
from menuwatch.web.dependencies import ReadConn, WriteConn

TokenPath = Annotated[int, Path(ge=1, le=INTEGER_MAX, description="Id of the token, the number in `mw_<number>_…`.")]


class TokenQuery(PageQuery):
    """Which tokens."""

    all: bool = Field(False, description="List the tokens of all users; requires `accounts:write`.")


class NewToken(Input):
    """A token to create for the authenticated user."""

    name: Annotated[Text, Field(min_length=1, max_length=100)] = Field(description="Purpose of the token.")
    scopes: Annotated[list[Permission], Field(min_length=1, max_length=50)] = Field(
        description="Permissions to grant; they cannot exceed your own."
    )
    expires_at: Instant | None = Field(None, description="When the token expires; it never expires if omitted.")


class CreatedToken(Struct, kw_only=True, frozen=True):
    """A created token with its secret."""

    token: Token
    secret: Annotated[
        str, doc("The complete token, `mw_<number>_<secret>`. Returned only once: only its hash is stored.")
    ]


router = APIRouter(prefix="/api/tokens", tags=["accounts"], dependencies=[own_account])

Who = Annotated[Principal, own_account]


@router.get("", **returns_page(Token), summary="List tokens")
async def list_tokens(request: Request, conn: ReadConn, who: Who, query: Annotated[TokenQuery, Query()]) -> Response:
    """Lists your tokens by id, including expired and revoked ones; with `all` those of all users."""
    if query.all and not who.may(Permission.ACCOUNTS):
        raise NotAllowed(Permission.ACCOUNTS)
    user_id = None if query.all else who.user_id
    keys = Keyset(query, int, "tokens", user_id)
    rows = await tokens.list_tokens(conn, user_id=user_id, after=keys.after or 0, limit=keys.limit)
    return keys.page(request, rows, lambda token: token.id)


@router.post("", **returns(CreatedToken, 201), summary="Create a token")
async def make_token(request: Request, conn: WriteConn, who: Who, new: NewToken) -> Response:
    """Creates a token for yourself, with scopes that you have. Its secret is in this response only."""
    assert who.user_id is not None, "every principal of ours is a user"
    owner = await users.get_user(conn, who.user_id)
    now = await database_now(conn)
    token, secret = await tokens.create(conn, owner, new.name, new.scopes, expires_at=new.expires_at, now=now, by=who)
    headers = {"Cache-Control": "no-store", "Location": f"/api/tokens/{token.id}"}
    return answer(request, CreatedToken(token=token, secret=secret), status=201, headers=headers)


@router.get("/{token_id}", **returns(Token), summary="Get a token")
async def get_token(request: Request, conn: ReadConn, who: Who, token_id: TokenPath) -> Response:
    """Returns one token without its secret."""
    return answer(request, await tokens.get_token(conn, token_id, by=who))


@router.delete("/{token_id}", **returns(Token), summary="Revoke a token")
async def revoke_token(request: Request, conn: WriteConn, who: Who, token_id: TokenPath) -> Response:
    """The token is invalid from the next request on."""
    return answer(request, await tokens.revoke(conn, token_id, by=who))
