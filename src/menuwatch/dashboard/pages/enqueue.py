"""Enqueueing work by hand: what and for whom, how many tasks that would be, and then the deed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.core.errors import Refused
from menuwatch.dashboard import screen
from menuwatch.db.pool import Connection
from menuwatch.operations import ask_many, tasks, wishes
from menuwatch.operations.ask_many import Reach
from menuwatch.operations.refusals import Unusable
from menuwatch.operations.wishes import STATE_ROLES, Wish
from menuwatch.stores import store as stores
from menuwatch.stores.store import Store
from menuwatch.tasks.model import PRIORITY_CHAINED, Role, Status
from menuwatch.web.auth import allowed
from menuwatch.web.forms import Form
from menuwatch.web.system import Reading, Sys, System, Writing
from menuwatch.web.words import many

router = APIRouter(prefix="/job-queue/enqueue", dependencies=[allowed(Permission.TASKS)])

ROLES: Mapping[Role, str] = {
    Role.PAYLOAD_FETCH: "fetch the menu and bring the catalogue up to date",
    Role.PRODUCT_DISCOVERY: "the first crawl of a store: its menu and details",
    Role.ENTRY_POINT_DISCOVERY: "find a store on its platform by its address",
    Role.STORE_DISCOVERY: "look for stores that are not known yet",
    Role.ANALYTICS_REFRESH: "reckon brands, prices and changes anew",
}
"""What can be asked for here, in words. A refresh of one payload is asked for where that payload is shown."""

SCOPES = {
    "store": "One store",
    "state": "Every store of a state",
    "due": "Every store that is due",
    "all": "The whole installation",
}
ALONE = (Role.STORE_DISCOVERY, Role.ANALYTICS_REFRESH)
"""Roles that are for no single store."""

PRIORITIES = {0: "0: as scheduled work", 10: "10: as work on demand", 20: "20: urgent"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A form that can be carried out. `store` where it is for one; `reach` where it is for many."""

    role: Role
    scope: str
    priority: int
    store: Store | None = None
    state: str | None = None
    reach: Reach | None = None
    doubles: int | None = None
    """The task that waits already and does the same."""

    @property
    def count(self) -> int:
        """How many tasks it makes."""
        return len(self.reach.ids) if self.reach is not None else 0 if self.doubles else 1


async def _typed(request: Request) -> Form:
    given = request.query_params if request.method == "GET" else await request.form()
    names = ("role", "scope", "store", "state", "priority")
    return Form({name: str(given.get(name, ""))[:200] for name in names})


Typed = Annotated[Form, Depends(_typed)]
"""What was typed. It stands before a route's connection, so that whoever sends slowly keeps none from others."""


@router.get("")
async def form(request: Request, typed: Typed, conn: Reading) -> Response:
    """The form, and, once it is filled in, what it would do."""
    asked = await _asked(conn, typed) if typed.text("role") else None
    return await _show(request, conn, typed, asked)


@router.post("")
async def enqueue(request: Request, typed: Typed, system: Sys, conn: Writing) -> Response:
    """Does it."""
    asked = await _asked(conn, typed)
    if asked is None:
        return await _show(request, conn, typed, None)
    try:
        said = await _do(conn, system, asked)
    except Unusable as error:
        typed.refuse(_FIELDS.get(error.field, ""), str(error))
        return await _show(request, conn, typed, asked)
    return screen.back(request, "/job-queue", said)


_FIELDS = {"dispensary_id": "store", "state_code": "state", "role": "role", "priority": "priority"}


async def _asked(conn: Connection, typed: Form) -> Asked | None:
    """What the form asks for; None, with the reasons noted in it, where that cannot be done."""
    role = typed.one_of("role", [str(one) for one in ROLES])
    scope = typed.one_of("scope", SCOPES) or ("all" if role in ALONE else "store")
    priority = typed.whole("priority", low=-1000, high=1000)
    if role is None or not typed.ok:
        typed.refuse("role", "choose the kind of work")
        return None
    kind = Role(role)
    asked = Asked(role=kind, scope=scope, priority=PRIORITY_CHAINED if priority is None else priority)
    if kind in ALONE and scope != "all":
        typed.refuse("scope", f"{kind} is for the whole installation, not for single stores")
    elif kind not in ALONE and scope == "all":
        typed.refuse("scope", f"{kind} is for stores: choose which")
    elif scope == "store":
        return await _for_store(conn, typed, asked)
    elif scope in ("state", "due"):
        return await _for_many(conn, typed, asked)
    return asked if typed.ok else None


async def _for_store(conn: Connection, typed: Form, asked: Asked) -> Asked | None:
    text = typed.text("store")
    if text is None:
        typed.refuse("store", "name the store: its number, its slug, or its id on the platform")
        return None
    try:
        found = await stores.find(conn, text)
    except Refused as error:
        typed.refuse("store", str(error))
        return None
    if found is None:
        typed.refuse("store", f"no store has the number, slug or id {text[:60]!r}: the list of stores has them")
        return None
    waiting = await tasks.page(
        conn, tasks.TaskFilter(roles=[asked.role], dispensary_id=found.id, statuses=_WAITING), limit=1
    )
    return Asked(
        role=asked.role,
        scope=asked.scope,
        priority=asked.priority,
        store=found,
        doubles=waiting[0]["id"] if waiting else None,
    )


_WAITING = [Status.PENDING]


async def _for_many(conn: Connection, typed: Form, asked: Asked) -> Asked | None:
    state = (typed.text("state") or "").upper() or None
    known = [name for name, _ in await ask_many.states(conn)]
    if asked.scope == "state" and state is None:
        typed.refuse("state", "choose the state")
    elif state is not None and state not in known:
        typed.refuse(
            "state", f"there is no store in {state[:20]!r}: there are stores in {', '.join(known) or 'no state yet'}"
        )
    elif asked.role not in STATE_ROLES:
        typed.refuse("role", f"for many stores it is one of {', '.join(STATE_ROLES)}")
    if not typed.ok:
        return None
    found = await ask_many.reach(conn, asked.role, state=state, only_due=asked.scope == "due")
    return Asked(role=asked.role, scope=asked.scope, priority=asked.priority, state=state, reach=found)


async def _do(conn: Connection, system: System, asked: Asked) -> str:
    platforms = tuple(system.platforms)
    if asked.reach is not None:
        made = await ask_many.enqueue(
            conn,
            asked.role,
            state=asked.state,
            only_due=asked.scope == "due",
            priority=asked.priority,
            platforms=platforms,
        )
        return f"{many(made, 'task')} enqueued: {asked.role}."
    wish = Wish(role=asked.role, dispensary_id=asked.store.id if asked.store else None, priority=asked.priority)
    number, created = await wishes.enqueue(conn, wish, platforms=platforms)
    return f"Task {number} enqueued: {asked.role}." if created else f"Task {number} waits for the same already."


async def _show(request: Request, conn: Connection, typed: Form, asked: Asked | None) -> Response:
    context = {
        "form": typed,
        "asked": asked,
        "roles": [(str(role), f"{role}: {text}") for role, text in ROLES.items()],
        "scopes": list(SCOPES.items()),
        "priorities": list(PRIORITIES.items()),
        "states": [(name, f"{name} ({many(n, 'store')})") for name, n in await ask_many.states(conn)],
        "query": urlencode({name: value for name, value in typed.values.items() if value}),
        "may_enqueue": True,
        "tab": "enqueue",
    }
    status = 200 if typed.ok else 422
    return screen.show(request, "job_queue/enqueue.html", context, status=status)
