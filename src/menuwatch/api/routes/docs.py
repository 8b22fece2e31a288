"""`/docs`, the API viewer (Swagger UI, served from this server), and one page for each type of problem.

Nothing is loaded from elsewhere, and links are relative: the server may lie below a path.
"""

from __future__ import annotations

import functools
import re
from html import escape
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Request
from fastapi import Path as InPath
from starlette.responses import HTMLResponse, Response

from menuwatch.api.problems import Missing, Problem
from menuwatch.web.assets import VENDOR, Assets
from menuwatch.web.headers import POLICY

router = APIRouter(include_in_schema=False)

_STATIC = Path(__file__).parents[1] / "static"


@functools.cache
def _assets() -> Assets:
    """Read on first use: they are a few megabytes, which only readers of these pages need."""
    return Assets({
        "docs.js": [VENDOR / "swagger-ui.js", _STATIC / "docs.js"],
        "docs.css": [VENDOR / "swagger-ui.css"],
        "problem.css": [_STATIC / "problem.css"],
    })  # fmt: skip


def _page(title: str, root: str, style: str, body: str) -> HTMLResponse:
    """`root`: the relative address below which `docs/static` lies."""
    return HTMLResponse(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f'<link rel="stylesheet" href="{root}docs{_assets().path(style)}"></head><body>{body}</body></html>',
        headers={"Content-Security-Policy": POLICY},
    )


def _paragraphs(text: str) -> str:
    """Plain text with `code` as HTML."""
    parts = (escape(" ".join(part.split()), quote=False) for part in text.split("\n\n") if part.strip())
    return re.sub("`([^`]+)`", r"<code>\1</code>", "".join(f"<p>{part}</p>" for part in parts))


@router.get("/docs")
async def docs(request: Request) -> HTMLResponse:
    return _page(
        f"{request.app.title} API", "", "docs.css",
        '<main><div id="swagger-ui"></div></main><noscript>This page needs JavaScript. The API description is '
        f'<a href="openapi.json">openapi.json</a>.</noscript><script src="docs{_assets().path("docs.js")}"></script>',
    )  # fmt: skip


@router.get("/docs/static/{mark}/{name}")
async def docs_static(request: Request, mark: str, name: str) -> Response:
    response = _assets().answer(request, mark, name)
    if response is None:
        raise Missing("this file does not exist")
    return response


@router.get("/problems/{slug}")
async def problem(slug: Annotated[str, InPath(max_length=60)]) -> HTMLResponse:
    for kind in Problem.__subclasses__():
        if kind.slug() == slug:
            return _page(
                kind.title, "../", "problem.css",
                f'<h1>{escape(kind.title)}</h1><p class="dim">Status {kind.status}, type <code>/problems/{slug}</code></p>'
                f'{_paragraphs(kind.__doc__ or "")}<p><a href="../docs">API reference</a></p>',
            )  # fmt: skip
    raise Missing("this problem type does not exist")
