"""Settings in effect."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from msgspec import Struct
from pydantic import Field

from menuwatch.accounts.model import Permission
from menuwatch.api.inputs import Input
from menuwatch.api.responses import answer, returns
from menuwatch.ops.installation import Setting, settings_shown
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppDep

router = APIRouter(prefix="/api/settings", tags=["settings"], dependencies=[require(Permission.READ)])


class SettingsQuery(Input):
    """Which settings."""

    changed: bool = Field(False, description="Only settings that differ from their default.")


class SettingList(Struct, frozen=True):
    """Settings."""

    items: list[Setting]


@router.get("", **returns(SettingList), summary="List settings")
async def list_settings(request: Request, system: AppDep, query: Annotated[SettingsQuery, Query()]) -> Response:
    """Lists the settings of this server by group. A secret is shown only as set or not, an address without its login."""
    settings = settings_shown(system.settings)
    return answer(request, SettingList([one for one in settings if one.changed or not query.changed]))
