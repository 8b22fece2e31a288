"""Maps errors to problems (RFC 9457): refusals, invalid values, missing permissions, and faults of the database."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from menuwatch.accounts.idempotency import InProgress, KeyMismatch
from menuwatch.accounts.login_throttle import TooManyTries
from menuwatch.accounts.users import Overreach
from menuwatch.api import problems
from menuwatch.api.problems import InvalidValue, Problem, respond
from menuwatch.core import errors
from menuwatch.core.errors import Conflict, InvalidField, MenuwatchError, NotFound, Permanent, Refused
from menuwatch.core.logging import get_logger
from menuwatch.db.keeper import Keeper
from menuwatch.ops.health import AwayCode, away
from menuwatch.storage.base import StorageUnavailable
from menuwatch.web.auth import NotAllowed, NotSignedIn, PasswordChangeRequired
from menuwatch.web.csrf import CrossSite
from menuwatch.web.idempotency import AnswerNotKept, BadKey
from menuwatch.web.request_middleware import shown_path
from menuwatch.web.sessions import WrongLogin
from menuwatch.web.validation import describe

log = get_logger(__name__)

_BY_STATUS: dict[int, type[Problem]] = {
    404: problems.Missing,
    405: problems.WrongMethod,
    413: problems.BodyTooLarge,
    415: problems.NotJson,
    500: problems.Fault,
    503: problems.Unavailable,
}
_CHALLENGE = 'Bearer realm="menuwatch"'
_UNEXPECTED = "an unexpected error; the log has it under this trace_id"


def problem_of(request: Request, error: Exception) -> Problem | None:
    """The problem of an error; None for an unexpected one."""
    text = str(error)
    match error:
        case Problem():
            return error
        case HTTPException():
            return _of_http(request, error)
        case RequestValidationError():
            return _of_validation(request, error)
        case psycopg.Error():
            return of_database(error, request.app.state.system.keeper)
        case NotSignedIn():
            challenge = _CHALLENGE + (', error="invalid_token"' if error.shown else "")
            return problems.LoginNeeded(text, headers={"WWW-Authenticate": challenge})
        case WrongLogin():
            return problems.WrongPassword(text, headers={"WWW-Authenticate": _CHALLENGE})
        case PasswordChangeRequired():
            return problems.PasswordChangeDue(text)
        case NotAllowed() | Overreach():
            return problems.Forbidden(text, permission=error.permission)
        case CrossSite():
            return problems.OtherSite(text)
        case TooManyTries():
            return problems.TooManyLogins(text, headers={"Retry-After": str(error.seconds)})
        case BadKey():
            return problems.BadIdempotencyKey(text)
        case InProgress():
            return problems.StillUnderWay(
                "a request with this Idempotency-Key is still being processed: send it again in a moment",
                headers={"Retry-After": "2"},
            )
        case AnswerNotKept():
            return problems.AlreadyDone(
                "this request was already processed, and its response was not stored: check the result, or use another key"
            )
        case KeyMismatch():
            return problems.KeyOfAnother("this Idempotency-Key was used for a different request: use a new one")
        case NotFound():
            return problems.Missing(text)
        case Conflict():
            return problems.ConflictingState(text)
        case InvalidField():
            invalid = [InvalidValue(pointer=f"#/{one.field}", detail=str(one)) for one in error.errors]
            return problems.RefusedRequest(text, invalid)
        case errors.PayloadMissing():
            return problems.PayloadMissing(text)
        case errors.PayloadDamaged():
            return problems.PayloadDamaged(text)
        case Refused() | Permanent():
            return problems.RefusedRequest(text)
        case StorageUnavailable():
            log.warning("object storage unavailable", action="storage_unavailable", error=text)
            return problems.Unavailable("the object storage does not respond", headers={"Retry-After": "30"})
        case MenuwatchError():
            return problems.Unavailable(text, headers={"Retry-After": "30"})
        case _:
            return None


def refuse(request: Request, error: Exception) -> Response:
    """The response to a request that failed with `error`."""
    problem = problem_of(request, error) or problems.Fault(_UNEXPECTED)
    if isinstance(error, psycopg.Error) and problem.status >= 500:
        log.error("database error", action="http_database_error", path=shown_path(request.scope), exc_info=error)
    return respond(request, problem)


def fault(request: Request) -> Response:
    """The response to a request that failed unexpectedly."""
    return respond(request, problems.Fault(_UNEXPECTED))


async def _handle(request: Request, error: Exception) -> Response:
    return refuse(request, error)


HANDLERS = dict.fromkeys(
    (
        HTTPException, RequestValidationError, Problem, MenuwatchError, psycopg.Error,
        NotSignedIn, WrongLogin, NotAllowed, CrossSite, TooManyTries,
    ),
    _handle,
)  # fmt: skip
"""Handlers of all expected errors."""


def install(app: FastAPI) -> None:
    """Has the app answer every expected error with a problem. Unexpected ones are caught further out (web/request_middleware.py)."""
    for kind, handler in HANDLERS.items():
        app.add_exception_handler(kind, handler)


def of_database(error: psycopg.Error, keeper: Keeper | None) -> Problem:
    """The problem of a database error; the server's message is only logged. `keeper` restarts an embedded database."""
    match error:
        case psycopg.DataError():
            return problems.BadValue(
                "a value of the request is out of range or contains characters that the database cannot store"
            )
        case psycopg.errors.IntegrityError():
            return problems.ConflictingState(
                "this conflicts with the stored data: something was added or removed in the meantime"
            )
        case psycopg.OperationalError():
            outage = away(error, keeper)
            kind = problems.DiskFull if outage.code == AwayCode.DISK_FULL else problems.Unavailable
            return kind(outage.detail, headers={"Retry-After": str(outage.retry_after)})
        case _:
            return problems.Fault(_UNEXPECTED)


def _pointer(location: Sequence[Any]) -> str:
    parts = [str(part).replace("~", "~0").replace("/", "~1") for part in location]
    return "#" + "".join(f"/{part}" for part in parts)


def _invalid_value(request: Request, fault: Mapping[str, Any]) -> InvalidValue:
    location, *inside = fault["loc"]
    detail = describe(fault)
    if fault["type"] == "extra_forbidden" and (names := _known(request, fault["loc"])):
        detail += f"; {names}"
    if location == "body":
        return InvalidValue(pointer=_pointer(inside), detail=detail)
    # Of a parameter that is repeated the name alone: no address has one called `role.0`.
    name = ".".join(str(part) for part in inside if isinstance(part, str))
    return InvalidValue(parameter=name, in_=str(location), detail=detail)


def _location(value: InvalidValue) -> str:
    """Where the value is, as people write it: `tasks[17].role`. A parameter may be without a name (`?=3`)."""
    if value.pointer is None:
        return value.parameter or "a parameter without a name"
    path = re.sub(r"/(\d+)(?=/|$)", r"[\1]", value.pointer.removeprefix("#"))
    return path.removeprefix("/").replace("/", ".").replace("~1", "/").replace("~0", "~") or "the body"


def _of_validation(request: Request, error: RequestValidationError) -> Problem:
    faults = error.errors()
    if any(fault["type"] == "json_invalid" for fault in faults):
        position = faults[0]["loc"][-1]
        return problems.MalformedBody(f"the body is not JSON: {faults[0]['ctx']['error']} at character {position}")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_json = kind == "application/json" or kind.endswith("+json")
    if not is_json and any(fault["loc"] == ("body",) for fault in faults):
        return problems.NotJson("send the body as JSON, with Content-Type: application/json")
    values = [_invalid_value(request, fault) for fault in faults]
    return problems.InvalidRequest("; ".join(f"{_location(value)}: {value.detail}" for value in values), values)


def _known(request: Request, location: Sequence[Any]) -> str | None:
    """The known parameters of the query, or fields of the body; None elsewhere."""
    document = request.app.openapi()
    path = getattr(request.scope.get("route"), "path", "")
    operation = document["paths"].get(path, {}).get(request.method.lower(), {})
    if location[0] == "query":
        names = [parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "query"]
        return f"the parameters are {', '.join(names)}" if names else "this URL takes no parameters"
    if location[0] == "body" and len(location) == 2:
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        schema = document["components"]["schemas"].get(str(body.get("$ref", "")).rpartition("/")[2], {})
        return f"the fields are {', '.join(schema['properties'])}" if schema.get("properties") else None
    return None


def _methods(request: Request) -> str:
    """The methods of a URL, over all routes that have it (the framework names those of the first alone)."""
    allowed: set[str] = set()
    own = request.url.path.removeprefix(request.scope.get("root_path", ""))
    for path, methods in request.app.openapi()["paths"].items():
        if re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)), own):
            allowed |= {method.upper() for method in methods}
    return ", ".join(sorted(allowed)) or "GET"


def _of_http(request: Request, error: HTTPException) -> Problem:
    headers = dict(error.headers or {})
    if error.status_code == 400 and isinstance(error.__cause__, (RecursionError, ValueError)):
        return problems.MalformedBody(
            "the body cannot be parsed: it is nested too deeply, or contains a number with too many digits"
        )
    if error.status_code == 405:
        headers = {"Allow": _methods(request)}
    slash = request.url.path.endswith("/")
    kind = _BY_STATUS.get(error.status_code, problems.RefusedRequest if error.status_code < 500 else problems.Fault)
    detail = {
        404: "there is nothing at this URL" + (": remove the slash at the end" if slash else ""),
        405: f"this URL supports {headers.get('Allow')}",
    }.get(error.status_code, str(error.detail))
    return kind(detail, headers=headers)
