"""What went wrong, as `application/problem+json` (RFC 9457).

Every kind of problem is a class: its docstring is the page that its `type` leads to. Answers say what is wrong and what would be
right; what only a developer can use goes to the log, under the `trace_id` of the answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec
import psycopg
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from menuwatch.core.errors import MenuwatchError, Permanent, Refused
from menuwatch.core.telemetry import get_logger
from menuwatch.operations.refusals import Conflict, NotFound, Unusable
from menuwatch.web.observe import shown_path

log = get_logger(__name__)

_encode = msgspec.json.Encoder(decimal_format="number").encode

MEDIA_TYPE = "application/problem+json"


class Problem(Exception):
    """The request could not be carried out."""

    status: ClassVar[int] = 400
    title: ClassVar[str] = "The request cannot be carried out"

    def __init__(
        self,
        detail: str,
        errors: Sequence[Mapping[str, str]] = (),
        headers: Mapping[str, str] | None = None,
        *,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = tuple(errors)
        self.headers = dict(headers or {})
        self.more = dict(more or {})
        """What else the answer holds, as RFC 9457 section 3.2 has it."""

    @classmethod
    def slug(cls) -> str:
        """The last part of the problem's `type`."""
        return re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()


class RefusedRequest(Problem):
    """The request was understood, and what it asks for cannot be done. `detail` says what would be right."""

    status = 400
    title = "Refused"


class BadCursor(Problem):
    """The `cursor` is none that this server gave for this list. A cursor is `next` of a page as it came; it works with the path,
    order and filters that it was given for, and with any `limit`."""

    status = 400
    title = "Bad cursor"


class BadValue(Problem):
    """A value of the request is of the right form, but the database cannot hold it: a number out of range, a text with a NUL."""

    status = 400
    title = "A value cannot be used"


class MalformedBody(Problem):
    """The body of the request is not JSON. `detail` says where reading it stopped."""

    status = 400
    title = "The body is not JSON"


class Missing(Problem):
    """There is nothing at this address, or what it names does not exist."""

    status = 404
    title = "Not found"


class NotSigned(Problem):
    """The address must be signed, and its signature is missing, wrong or too old. Presets need none."""

    status = 403
    title = "Not signed"


class WrongMethod(Problem):
    """The address exists, but not for this method. The `Allow` header names the methods it has."""

    status = 405
    title = "Method not allowed"


class ConflictingState(Problem):
    """What the request names exists, but the state it is in does not allow this."""

    status = 409
    title = "Conflict"


class Changed(Problem):
    """`If-Match` names another version than the current one: someone else changed it. Fetch it again and decide anew."""

    status = 412
    title = "It was changed meanwhile"


class BodyTooLarge(Problem):
    """The body of the request is larger than this server reads."""

    status = 413
    title = "The body is too large"


class NotJson(Problem):
    """The body is of a media type that this address does not take. Send JSON with `Content-Type: application/json`."""

    status = 415
    title = "Unsupported media type"


class BrokenPicture(Problem):
    """The stored file is no picture that can be shown: damaged, of an unknown kind, or with more pixels than are ever decoded."""

    status = 422
    title = "The picture cannot be shown"


class InvalidRequest(Problem):
    """Some values of the request are not what they must be. `errors` names each: `pointer` is where it stands in the body (a JSON
    Pointer), `parameter` its name in the query or path; `detail` says what is allowed."""

    status = 422
    title = "Invalid request"


class Fault(Problem):
    """Something went wrong on our side. The log has it under the `trace_id` of this answer."""

    status = 500
    title = "Internal error"


class Unavailable(Problem):
    """The database cannot be reached or is overloaded. Try again after the time in `Retry-After` (seconds)."""

    status = 503
    title = "Unavailable"


KINDS: tuple[type[Problem], ...] = (
    RefusedRequest,
    BadCursor,
    BadValue,
    MalformedBody,
    NotSigned,
    Missing,
    WrongMethod,
    ConflictingState,
    Changed,
    BodyTooLarge,
    NotJson,
    BrokenPicture,
    InvalidRequest,
    Fault,
    Unavailable,
)
"""Every kind of problem that an answer can have."""

_BY_STATUS: dict[int, type[Problem]] = {
    404: Missing,
    405: WrongMethod,
    413: BodyTooLarge,
    415: NotJson,
    500: Fault,
    503: Unavailable,
}


def trace_id(request: Request) -> str:
    """The id of this request, in answer and log."""
    found: str = getattr(request.state, "trace_id", "")
    return found


def respond(request: Request, problem: Problem) -> Response:
    """The problem as an answer."""
    body: dict[str, Any] = {
        "type": f"{request.scope.get('root_path', '')}/problems/{problem.slug()}",
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
        "instance": request.url.path,
        "trace_id": trace_id(request),
    }
    if problem.errors:
        body["errors"] = problem.errors
    body |= problem.more
    return Response(_encode(body), status_code=problem.status, headers=problem.headers, media_type=MEDIA_TYPE)


def fault(request: Request) -> Response:
    """The answer to a request that failed on our side."""
    return respond(request, Fault("an unexpected error; the log has it under this trace_id"))


def of_refusal(error: MenuwatchError) -> Problem:
    """The problem that one of our own errors is to who asked."""
    text = str(error)
    match error:
        case NotFound():
            return Missing(text)
        case Conflict():
            return ConflictingState(text)
        case Unusable():
            return RefusedRequest(text, [{"pointer": f"#/{error.field}", "detail": text}])
        case Refused() | Permanent():
            return RefusedRequest(text)
        case _:
            return Unavailable(text, headers={"Retry-After": "30"})


def of_database(error: psycopg.Error) -> Problem:
    """The problem that a fault of the database is; what the server said is for the log alone."""
    match error:
        case psycopg.DataError():
            return BadValue("a value of the request is out of range or holds characters that the database cannot store")
        case psycopg.errors.IntegrityError():
            return ConflictingState("this does not agree with what is stored: something was added or removed meanwhile")
        case psycopg.OperationalError():
            return Unavailable("the database cannot be reached or is overloaded", headers={"Retry-After": "5"})
        case _:
            return Fault("an unexpected error; the log has it under this trace_id")


def _pointer(location: Sequence[Any]) -> str:
    parts = [str(part).replace("~", "~0").replace("/", "~1") for part in location]
    return "#" + "".join(f"/{part}" for part in parts)


def _spoken(pointer: str) -> str:
    """A place in the body as people write it: `tasks[17].role`."""
    place = re.sub(r"/(\d+)(?=/|$)", r"[\1]", pointer.removeprefix("#"))
    return place.removeprefix("/").replace("/", ".").replace("~1", "/").replace("~0", "~") or "the body"


def _said(found: Mapping[str, Any]) -> str:
    """What is wrong with one value, where the validator's own words leave out what would be right."""
    kind, value = str(found["type"]), found.get("input")
    if kind == "extra_forbidden":
        return "is not known here"
    if kind == "timezone_aware":
        given = value if isinstance(value, str) and "T" in value and len(value) <= 26 else "2026-11-20T14:30:00"
        if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value):
            return f"is a date without a time and an offset from UTC: write it as {value}T00:00:00Z"
        return f"has no timezone: write it with its offset from UTC, as {given}Z or {given}+01:00"
    if kind.startswith("datetime_"):
        why = str((found.get("ctx") or {}).get("error", ""))
        because = f" ({why})" if "outside" in why else ""
        return (
            f"is no valid datetime{because}: write it as 2026-11-20T14:30:00Z, or with another offset than Z from UTC"
        )
    if kind.startswith("date_"):
        return "is no valid date: write it as 2026-11-20"
    if kind == "too_short" and isinstance(value, str):
        return "must have at least 1 character"
    if kind == "too_long" and isinstance(value, str):
        return f"must have at most {found['ctx']['max_length']} characters"
    return str(found["msg"]).removeprefix("Value error, ")


def _error(found: Mapping[str, Any]) -> dict[str, str]:
    place, *inside = found["loc"]
    text = _said(found)
    if place == "body":
        return {"pointer": _pointer(inside), "detail": text}
    # Of a parameter that is repeated the name alone: no address has one called `role.0`.
    return {
        "parameter": ".".join(str(part) for part in inside if isinstance(part, str)),
        "in": str(place),
        "detail": text,
    }


def _place(error: Mapping[str, str]) -> str:
    """Where it stands, in words; a parameter may be without a name (`?=3`)."""
    if "pointer" in error:
        return _spoken(error["pointer"])
    return error["parameter"] or "a parameter without a name"


def of_validation(request: Request, error: RequestValidationError) -> Problem:
    """The problem that values of the wrong form are."""
    found = error.errors()
    if any(e["type"] == "json_invalid" for e in found):
        where = found[0]["loc"][-1]
        return MalformedBody(f"the body is not JSON: {found[0]['ctx']['error']} at character {where}")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if any(e["loc"] == ("body",) for e in found) and not (kind == "application/json" or kind.endswith("+json")):
        return NotJson("send the body as JSON, with Content-Type: application/json")
    errors = [_error(e) for e in found]
    for each, shown in zip(found, errors, strict=True):
        if each["type"] == "extra_forbidden" and (names := _known(request, each["loc"])):
            shown["detail"] += f": {names}"
    said = "; ".join(f"{_place(e)}: {e['detail']}" for e in errors)
    return InvalidRequest(said, errors)


def _known(request: Request, place: Sequence[Any]) -> str | None:
    """What would be known in place of a parameter of the query, or of a field of the body, that is not; None where that is no list."""
    document = request.app.openapi()
    path = getattr(request.scope.get("route"), "path", "")
    operation = document["paths"].get(path, {}).get(request.method.lower(), {})
    if place[0] == "query":
        names = [one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"]
        return f"the parameters are {', '.join(names)}" if names else "this address takes no parameters"
    if place[0] == "body" and len(place) == 2:
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        schema = document["components"]["schemas"].get(str(body.get("$ref", "")).rpartition("/")[2], {})
        return f"the fields are {', '.join(schema['properties'])}" if schema.get("properties") else None
    return None


def _methods(request: Request) -> str:
    """The methods that an address takes, over all routes that have it (the framework names those of the first alone)."""
    allowed: set[str] = set()
    own = request.url.path.removeprefix(request.scope.get("root_path", ""))
    for path, methods in request.app.openapi()["paths"].items():
        if re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)), own):
            allowed |= {method.upper() for method in methods}
    return ", ".join(sorted(allowed)) or "GET"


def _of_http(request: Request, error: HTTPException) -> Problem:
    headers = dict(error.headers or {})
    if error.status_code == 400 and isinstance(error.__cause__, (RecursionError, ValueError)):
        return MalformedBody("the body cannot be read: it is nested too deeply, or a number in it has too many digits")
    if error.status_code == 405:
        headers = {"Allow": _methods(request)}
    slash = request.url.path.endswith("/")
    kind = _BY_STATUS.get(error.status_code, RefusedRequest if error.status_code < 500 else Fault)
    detail = {
        404: "there is nothing at this address" + (": leave out the slash at its end" if slash else ""),
        405: f"this address takes {headers.get('Allow')}",
    }.get(error.status_code, str(error.detail))
    return kind(detail, headers=headers)


def install(app: FastAPI) -> None:
    """Has the app answer every error with a problem. Unexpected ones are caught further out (observe.py)."""

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException), "registered for it"
        return respond(request, _of_http(request, error))

    async def validation(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError), "registered for it"
        return respond(request, of_validation(request, error))

    async def raised(request: Request, error: Exception) -> Response:
        assert isinstance(error, Problem), "registered for it"
        return respond(request, error)

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, MenuwatchError), "registered for it"
        return respond(request, of_refusal(error))

    async def database(request: Request, error: Exception) -> Response:
        assert isinstance(error, psycopg.Error), "registered for it"
        problem = of_database(error)
        if problem.status >= 500:
            log.error("database error", action="http_database_error", path=shown_path(request.scope), exc_info=error)
        return respond(request, problem)

    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RequestValidationError, validation)
    app.add_exception_handler(Problem, raised)
    app.add_exception_handler(MenuwatchError, refused)
    app.add_exception_handler(psycopg.Error, database)
