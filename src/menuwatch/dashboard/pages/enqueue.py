"""Enqueue tasks by hand: a form, a preview with the number of tasks, and the action."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.core.errors import InvalidField, Refused
from menuwatch.core.format import pluralize
from menuwatch.dashboard import screen
from menuwatch.db.pool import Connection
from menuwatch.queue import enqueue as queue
from menuwatch.queue.enqueue import STATE_ROLES, EnqueuePreview, StoreSelection, TaskRequest
from menuwatch.queue.model import PRIORITY_CHAINED, PRIORITY_MAX, PRIORITY_MIN, ROLE_INFO, Role, Status
from menuwatch.queue.task_list import TaskFilter, list_tasks
from menuwatch.stores import store as stores
from menuwatch.stores.store import Store
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppContext, AppDep, ReadConn, WriteConn
from menuwatch.web.forms import FormInput, fields

router = APIRouter(prefix="/job-queue/enqueue", dependencies=[require(Permission.TASKS)])

ROLES = (
    Role.PAYLOAD_FETCH,
    Role.PRODUCT_DISCOVERY,
    Role.ENTRY_POINT_DISCOVERY,
    Role.STORE_DISCOVERY,
    Role.ANALYTICS_REFRESH,
)
"""Roles of the form. A refresh of one payload is enqueued on the payload's page."""

SCOPES = {
    "store": "One store",
    "state": "All stores of a state",
    "due": "All due stores",
    "all": "All stores",
}
STORELESS_ROLES = (Role.STORE_DISCOVERY, Role.ANALYTICS_REFRESH)

PRIORITIES = {0: "0 – scheduled", 10: "10 – on demand", 20: "20: urgent"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A valid form. `store` for a single store; `preview` for many."""

    role: Role
    scope: str
    priority: int
    store: Store | None = None
    state: str | None = None
    preview: EnqueuePreview | None = None
    duplicate: int | None = None
    """Id of an equal pending task."""

    @property
    def count(self) -> int:
        """Number of new tasks."""
        return self.preview.created if self.preview is not None else 0 if self.duplicate else 1

    @property
    def selection(self) -> StoreSelection:
        """The stores that get a task, if there are many."""
        return StoreSelection(role=self.role, state=self.state, only_due=self.scope == "due")


Typed = Annotated[FormInput, fields("role", "scope", "store", "state", "priority", longest=200)]


@router.get("")
async def form(request: Request, typed: Typed, conn: ReadConn) -> Response:
    """The form, and its preview once it is filled in."""
    submission = await _parse(conn, typed) if typed.text("role") else None
    return await _show(request, conn, typed, submission)


@router.post("")
async def enqueue(request: Request, typed: Typed, system: AppDep, conn: WriteConn) -> Response:
    submission = await _parse(conn, typed)
    if submission is None:
        return await _show(request, conn, typed, None)
    try:
        message = await _enqueue(conn, system, submission)
    except InvalidField as error:
        typed.add_error(_FIELDS.get(error.field, ""), str(error))
        return await _show(request, conn, typed, submission)
    return screen.flash_to(request, "/job-queue", message)


_FIELDS = {"dispensary_id": "store", "state_code": "state", "role": "role", "priority": "priority"}


async def _parse(conn: Connection, typed: FormInput) -> Submission | None:
    """Parses the form; None if invalid, with the errors added to it."""
    role = typed.parse_choice("role", [str(one) for one in ROLES])
    scope = typed.parse_choice("scope", SCOPES) or ("all" if role in STORELESS_ROLES else "store")
    priority = typed.parse_int("priority", low=PRIORITY_MIN, high=PRIORITY_MAX)
    if role is None or not typed.ok:
        typed.add_error("role", "choose a task type")
        return None
    kind = Role(role)
    submission = Submission(role=kind, scope=scope, priority=PRIORITY_CHAINED if priority is None else priority)
    if kind in STORELESS_ROLES and scope != "all":
        typed.add_error("scope", f"{kind} does not work on single stores: choose “{SCOPES['all']}”")
    elif kind not in STORELESS_ROLES and scope == "all":
        typed.add_error("scope", f"{kind} needs a store or a group of stores")
    elif scope == "store":
        return await _for_store(conn, typed, submission)
    elif scope in ("state", "due"):
        return await _for_many(conn, typed, submission)
    return submission if typed.ok else None


async def _for_store(conn: Connection, typed: FormInput, submission: Submission) -> Submission | None:
    text = typed.text("store")
    if text is None:
        typed.add_error("store", "enter the store's name, slug or ID")
        return None
    try:
        store = await stores.resolve(conn, text)
    except Refused as error:
        typed.add_error("store", str(error))
        return None
    equal = TaskFilter(roles=[submission.role], dispensary_id=store.id, statuses=[Status.PENDING])
    pending = await list_tasks(conn, equal, limit=1)
    return replace(submission, store=store, duplicate=pending[0].id if pending else None)


async def _for_many(conn: Connection, typed: FormInput, submission: Submission) -> Submission | None:
    state = (typed.text("state") or "").upper() or None
    known = list(await queue.states_with_stores(conn))
    if submission.scope == "state" and state is None:
        typed.add_error("state", "choose a state")
    elif state is not None and state not in known:
        exist = f"stores exist in {', '.join(known)}" if known else "no state has stores yet"
        typed.add_error("state", f"no stores in {state[:20]!r}: {exist}")
    elif submission.role not in STATE_ROLES:
        typed.add_error("role", f"for several stores, use one of: {', '.join(STATE_ROLES)}")
    if not typed.ok:
        return None
    submission = replace(submission, state=state)
    return replace(submission, preview=await queue.preview_stores(conn, submission.selection))


async def _enqueue(conn: Connection, system: AppContext, submission: Submission) -> str:
    """Returns the message for the person."""
    platforms, role = tuple(system.platforms), submission.role
    if submission.preview is not None:
        result = await queue.enqueue_stores(
            conn, submission.selection, platforms=platforms, priority=submission.priority, skip_pending=True
        )
        return f"{pluralize(result.created, 'task')} enqueued: {role}."
    store_id = submission.store.id if submission.store else None
    request = TaskRequest(role=role, dispensary_id=store_id, priority=submission.priority)
    enqueued = await queue.enqueue(conn, request, platforms=platforms)
    task_id = enqueued.task.id
    return (
        f"Task {task_id} enqueued: {role}."
        if enqueued.created
        else f"Task {task_id} is already queued for the same work."
    )


async def _show(request: Request, conn: Connection, typed: FormInput, submission: Submission | None) -> Response:
    context = {
        "form": typed,
        "submission": submission,
        "roles": [(str(role), f"{role}: {ROLE_INFO[role].description}") for role in ROLES],
        "scopes": list(SCOPES.items()),
        "priorities": list(PRIORITIES.items()),
        "states": [
            (name, f"{name} ({pluralize(n, 'store')})") for name, n in (await queue.states_with_stores(conn)).items()
        ],
        "query": urlencode({name: value for name, value in typed.values.items() if value}),
        "may_enqueue": True,
        "tab": "enqueue",
    }
    status = 200 if typed.ok else 422
    return screen.render(request, "job_queue/enqueue.html", context, status=status)
