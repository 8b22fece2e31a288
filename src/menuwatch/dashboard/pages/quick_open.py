"""Search for anything by number or name: the page that the palette shows as well. The stream of changes."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.dashboard import commands, screen
from menuwatch.ops import quick_search
from menuwatch.ops.quick_search import ResultKind
from menuwatch.web.auth import require
from menuwatch.web.dependencies import ReadConn
from menuwatch.web.live import TOPICS, Live

router = APIRouter(dependencies=[require(Permission.READ)])

Text = Annotated[str, Query(max_length=200)]


@router.get("/live")
async def live(request: Request, topics: Annotated[str, Query(max_length=400)] = "") -> Response:
    """Server-sent events: changed topics among the requested ones."""
    changes: Live = request.app.state.live
    return changes.stream(request, TOPICS & set(topics.split(",")))


@router.get("/jump")
async def quick_open(request: Request, conn: ReadConn, q: Text = "") -> Response:
    """Redirects to what has exactly this number or name, else to the results."""
    accounts = screen.may(request, Permission.ACCOUNTS)
    results = await quick_search.search(conn, q, accounts=accounts)
    exact = [one for one in results if one.exact]
    if exact and (len(exact) == 1 or exact[0].kind == ResultKind.TASK):
        return screen.redirect(request, commands.path_of(exact[0]))
    return screen.redirect(request, f"/search?q={quote(q.strip())}")


@router.get("/search")
async def search(request: Request, conn: ReadConn, q: Text = "") -> Response:
    """Objects, screens and commands that match."""
    who = screen.principal(request)
    accounts = who.may(Permission.ACCOUNTS)
    text = " ".join(q.replace("\x00", " ").split())
    words = text.lower().split()
    # `store 4` and `pause dutchie.com`: a kind or a verb in front narrows.
    verb = words[0] if words and words[0] in commands.VERBS else None
    rest = words[1:] if verb else words
    kind = next((one for one in ResultKind if rest and rest[0] == one.value), None)
    rest = rest[1:] if kind else rest
    results = [] if verb else await quick_search.search(conn, text, accounts=accounts)
    if verb or kind:
        named = await quick_search.search(conn, " ".join(rest), accounts=accounts, everything=True)
        named = [one for one in named if kind is None or one.kind == kind]
    else:
        named = results[:3]
    context = {
        "q": text,
        "results": [(one, commands.path_of(one)) for one in (results or named)],
        "actions": commands.on_objects(named, verb, who) if words else [],
        "general": commands.general(words, who),
    }
    return screen.render(request, "search.html", context)
