"""Users, sessions, tokens and the audit."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import Path
from pydantic import BaseModel, Field

from menuwatch.accounts.model import Permission, Role
from menuwatch.api.schemas.common import INTEGER_MAX, Input, Instant, Page, PageQuery, Search, Text

UserPath = Annotated[int, Path(ge=1, le=INTEGER_MAX, description="Number of the user.")]
TokenPath = Annotated[int, Path(ge=1, le=INTEGER_MAX, description="Number of the token: `mw_<number>_…`.")]

Name = Annotated[Text, Field(min_length=1, max_length=64)]
Password = Annotated[str, Field(min_length=1, max_length=200)]


class LogIn(Input):
    """A name and its password."""

    name: Annotated[str, Field(max_length=200)] = Field(description="The user's name, in whatever case.")
    password: Annotated[str, Field(max_length=1000)] = Field(description="The password.")


class Who(BaseModel):
    """Who asks, and what they may do."""

    name: str = Field(description="The user's name; for a token its owner's.")
    role: Role = Field(description="The user's role.")
    permissions: list[Permission] = Field(description="What may be done with this session or token, now.")
    user_id: int | None = Field(description="Number of the user.")
    token_id: int | None = Field(description="Number of the token that was sent; null for a login.")
    must_change_password: bool = Field(
        description="The password was given to them: until they have chosen their own they may do nothing else."
    )


class NewPassword(Input):
    """Another password."""

    current: Annotated[str, Field(max_length=1000)] = Field(description="The current password.")
    new: Annotated[str, Field(max_length=1000)] = Field(description="The new one, 12 to 200 characters.")


class User(BaseModel):
    """Somebody who may log in."""

    id: int = Field(description="Number of the user.")
    name: str = Field(description="The name.")
    role: Role = Field(description="`viewer` looks, `operator` also acts, `admin` also has accounts in hand.")
    must_change_password: bool = Field(description="Whether the password was given to them and is still to be changed.")
    disabled_at: datetime | None = Field(
        description="Since when neither they nor their tokens are let in; null: they are."
    )
    created_at: datetime = Field(description="When the user was added.")
    updated_at: datetime = Field(description="When role, password or state last changed.")
    password_changed_at: datetime = Field(description="When the password was last set.")
    last_login_at: datetime | None = Field(description="When they last logged in.")


class UserPage(Page[User]):
    """Users, page by page."""


class NewUser(Input):
    """A user to be added."""

    name: Name = Field(description="1 to 64 of A-Z, a-z, 0-9 and `. _ @ + -`; no other user's in whatever case.")
    role: Role = Field(description="The role; none that may do more than you.")


class UserChange(Input):
    """What is to be changed of a user; what is left out stays."""

    role: Role | None = Field(None, description="Another role, in force at once.")
    disabled: bool | None = Field(None, description="Whether neither they nor their tokens are let in.")


class WithPassword(BaseModel):
    """A user, and the password for the next login."""

    user: User = Field(description="The user.")
    one_time_password: str = Field(description="Shown this once; it must be changed at the first login.")


class Token(BaseModel):
    """A token, without its secret."""

    id: int = Field(description="Number of the token.")
    user_id: int = Field(description="Number of its owner.")
    owner: str = Field(description="Name of its owner.")
    name: str = Field(description="What it is for.")
    scopes: list[Permission] = Field(description="What it may do, as far as its owner's role may at that moment.")
    created_at: datetime = Field(description="When it was made.")
    expires_at: datetime | None = Field(description="When it ends; null: never.")
    last_used_at: datetime | None = Field(description="When it was last used, to the minute.")
    revoked_at: datetime | None = Field(description="When it was revoked.")


class TokenPage(Page[Token]):
    """Tokens, page by page."""


class TokenQuery(PageQuery):
    """Which tokens."""

    all: bool = Field(False, description="Those of everybody; takes `accounts:write`.")


class NewToken(Input):
    """A token to be made, for whoever asks."""

    name: Annotated[Text, Field(min_length=1, max_length=100)] = Field(description="What it is for.")
    scopes: Annotated[list[Permission], Field(min_length=1, max_length=50)] = Field(
        description="What it may do; nothing that you may not."
    )
    expires_at: Instant | None = Field(None, description="When it ends; never where left out.")


class MadeToken(BaseModel):
    """A token that was made."""

    token: Token = Field(description="What it is.")
    secret: str = Field(
        description="The token as it is sent, `mw_<number>_<secret>`. Shown this once: only its hash is kept."
    )


class Deed(BaseModel):
    """Something that was done."""

    id: int = Field(description="Number of the entry.")
    at: datetime = Field(description="When.")
    actor: str = Field(description="Who: a user's name, or `cli:` and the name of the account of the operating system.")
    actor_kind: str = Field(description="`user` in a browser, `token` for a program of theirs, `cli` at the terminal.")
    user_id: int | None = Field(description="Number of the user; they may be gone meanwhile.")
    token_id: int | None = Field(description="Number of the token.")
    via: str = Field(description="`api`, `dashboard` or `cli`.")
    action: str = Field(description="What: `task_cancelled`, `user_added`.")
    subject_kind: str | None = Field(description="What kind of thing it was done to.")
    subject_id: str | None = Field(description="Which one.")
    details: dict[str, Any] = Field(description="What was changed, and to what; never a secret.")
    request_id: str | None = Field(description="Id of the request, as in the log.")


class DeedPage(Page[Deed]):
    """What was done, page by page."""


Plain = Annotated[Search, Field(pattern="^[a-z][a-z0-9_]*$")]
"""Of an action or a kind: small letters, digits and underscores."""


class AuditQuery(PageQuery):
    """Which entries."""

    actor: Search | None = Field(None, description="Only of this one.")
    action: Plain | None = Field(None, description="Only this, as `user_added`.")
    subject_kind: Plain | None = Field(None, description="Only things of this kind, as `user` or `alert_rule`.")
    subject_id: Search | None = Field(None, description="Only the one of this number or name.")
    since: Instant | None = Field(None, description="Only from this time on (ISO 8601 with offset).")
    until: Instant | None = Field(None, description="Only before this time (ISO 8601 with offset).")
