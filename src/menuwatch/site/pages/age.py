"""Age check of the public site (MINIMUM_AGE)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from starlette.responses import RedirectResponse

from menuwatch.site import screen
from menuwatch.web.csrf import same_site
from menuwatch.web.forms import FormInput, fields

router = APIRouter()

_YEAR = 365 * 86_400


@router.post("/age", dependencies=[Depends(same_site)])
async def answer(request: Request, form: Annotated[FormInput, fields("answer", "next")]) -> Response:
    """Remembers a "yes" for a year and redirects to the requested page; otherwise shows that the visitor is too young."""
    settings = screen.system_of(request).settings
    root = request.scope.get("root_path", "")
    if form.value("answer") != "yes":
        return screen.render(
            request, "too_young.html", {"minimum_age": settings.minimum_age, "index": False}, keep=False
        )
    wanted = form.value("next")
    inside = wanted.startswith("/") and not wanted.startswith(("//", "/\\")) and wanted.isprintable()
    response = RedirectResponse(root + (wanted if inside else "/"), status_code=303)
    secure = (settings.public_url or "").startswith("https://")
    response.set_cookie(
        screen.AGE_COOKIE,
        str(settings.minimum_age),
        max_age=_YEAR,
        path=root or "/",
        secure=secure,
        httponly=True,
        samesite="lax",
    )
    return response
