"""Problems of the API, as `application/problem+json` (RFC 9457).

Each type of problem is a class; its docstring is the page that its `type` leads to. Responses say what is wrong and what is
right; details for developers are logged under the `trace_id` of the response.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import msgspec
from fastapi import Request, Response
from msgspec import Struct, field

from menuwatch.core.shapes import doc

_encode = msgspec.json.Encoder(decimal_format="number").encode

MEDIA_TYPE = "application/problem+json"


class InvalidValue(Struct, kw_only=True, frozen=True, omit_defaults=True):
    """An invalid value in a request."""

    detail: Annotated[str, doc("What is wrong with the value and what is allowed.")]
    pointer: Annotated[str | None, doc("Location in the body: a JSON Pointer as a URI fragment.")] = None
    parameter: Annotated[str | None, doc("Name of the query or path parameter.")] = None
    in_: Annotated[str | None, doc("Location of the parameter: `query`, `path` or `header`.")] = field(
        name="in", default=None
    )


class ProblemDetails(Struct, kw_only=True, frozen=True, omit_defaults=True):
    """An error (RFC 9457)."""

    type: Annotated[str, doc("URI of the kind of problem; it leads to a page about it.")]
    title: Annotated[str, doc("Short title of the kind of problem.")]
    status: Annotated[int, doc("HTTP status.")]
    detail: Annotated[str, doc("What is wrong in this case, and how to fix it.")]
    instance: Annotated[str, doc("Path of the request.")]
    trace_id: Annotated[str, doc("Id of the request, as in the log and in `X-Request-Id`.")]
    errors: Annotated[Sequence[InvalidValue] | None, doc("All invalid values of the request.")] = None
    permission: Annotated[str | None, doc("For `forbidden`: the required permission.")] = None
    current: Annotated[Any, doc("For `changed`: the current representation, as a GET would return it.")] = None


class Problem(Exception):
    """The request could not be processed."""

    status: ClassVar[int] = 400
    title: ClassVar[str] = "The request cannot be processed"

    def __init__(
        self,
        detail: str,
        errors: Sequence[InvalidValue] = (),
        headers: Mapping[str, str] | None = None,
        *,
        permission: str | None = None,
        current: Any = None,
    ) -> None:
        """`permission` and `current` as in `ProblemDetails`."""
        super().__init__(detail)
        self.detail = detail
        self.errors = tuple(errors)
        self.headers = dict(headers or {})
        self.permission = permission
        self.current = current

    @classmethod
    def slug(cls) -> str:
        """The last part of the problem's `type`."""
        return re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()


class RefusedRequest(Problem):
    """The request is well-formed but cannot be fulfilled. `detail` says how to fix it."""

    status = 400
    title = "Request refused"


class BadCursor(Problem):
    """The `cursor` was not issued for this list. A cursor is the `next` of a page, unchanged; use it with the path, order and
    filters of that request, and any `limit`."""

    status = 400
    title = "Invalid cursor"


class BadValue(Problem):
    """A value of the request is well-formed, but the database cannot store it: a number out of range, or a text with a NUL
    character."""

    status = 400
    title = "Invalid value"


class MalformedBody(Problem):
    """The body of the request is not JSON. `detail` says where parsing stopped."""

    status = 400
    title = "Invalid JSON"


class Missing(Problem):
    """There is nothing at this URL, or the resource it names does not exist."""

    status = 404
    title = "Not found"


class NotSigned(Problem):
    """The URL must be signed, and its signature is missing, wrong or expired. Presets need no signature."""

    status = 403
    title = "Invalid signature"


class WrongMethod(Problem):
    """The URL does not support this method. The `Allow` header lists the supported methods."""

    status = 405
    title = "Method not allowed"


class ConflictingState(Problem):
    """The current state of the resource does not allow this request."""

    status = 409
    title = "Conflict"


class Changed(Problem):
    """`If-Match` names another version than the current one: the resource was changed since you read it. Fetch it again before
    changing it."""

    status = 412
    title = "Precondition failed"


class BodyTooLarge(Problem):
    """The body of the request exceeds the size limit."""

    status = 413
    title = "Body too large"


class NotJson(Problem):
    """This URL does not accept the media type of the body. Send JSON with `Content-Type: application/json`."""

    status = 415
    title = "Unsupported media type"


class BrokenPicture(Problem):
    """The stored file cannot be decoded as an image: damaged, of an unknown format, or with too many pixels."""

    status = 422
    title = "Image cannot be decoded"


class InvalidRequest(Problem):
    """Some values of the request are invalid. `errors` lists them: `pointer` is the location in the body (a JSON Pointer),
    `parameter` the name in the query or path; `detail` says what is allowed."""

    status = 422
    title = "Invalid request"

    @classmethod
    def parameter(cls, name: str, detail: str, location: str = "query") -> InvalidRequest:
        """The problem of one parameter."""
        return cls(f"{name}: {detail}", [InvalidValue(parameter=name, in_=location, detail=detail)])


class Fault(Problem):
    """An unexpected error occurred. The log has it under the `trace_id` of this response."""

    status = 500
    title = "Internal error"


class PayloadMissing(Problem):
    """The payload exists, but its file is missing from the archive. Run `menuwatch verify --repair`, or copy the file from a
    backup."""

    status = 500
    title = "Archived file missing"


class PayloadDamaged(Problem):
    """The payload exists, but its archived file is unreadable or not what was archived. Run `menuwatch verify --repair`, or copy
    the file from a backup."""

    status = 500
    title = "Archived file damaged"


class Unavailable(Problem):
    """The database is unreachable or overloaded. Try again after the time in `Retry-After` (seconds)."""

    status = 503
    title = "Service unavailable"


class DiskFull(Problem):
    """The disk of the database is full. Nothing was changed. The same request succeeds once there is space again; an embedded
    database that stopped for this reason restarts automatically."""

    status = 503
    title = "Disk full"


class LoginNeeded(Problem):
    """The request has no credentials, or the token is invalid, expired or revoked. Send `Authorization: Bearer mw_…` with an API
    token (`menuwatch tokens create`), or log in (`POST /api/session`)."""

    status = 401
    title = "Not authenticated"


class WrongPassword(Problem):
    """The name or password is wrong, or the user is disabled; the response does not say which."""

    status = 401
    title = "Wrong name or password"


class Forbidden(Problem):
    """You are authenticated but lack the permission named in `permission`: your role must have it, and your token its scope."""

    status = 403
    title = "Permission denied"


class PasswordChangeDue(Problem):
    """Your password is temporary. Choose your own (`POST /api/session/password`); until then every other request is refused."""

    status = 403
    title = "Password change required"


class OtherSite(Problem):
    """The request carries a session cookie but comes from another site, or does not say where it comes from. Browsers send that
    information automatically; programs send a token instead of the cookie. Behind a proxy, `PUBLIC_URL` must be set to the
    address of this server."""

    status = 403
    title = "Cross-site request"


class TooManyLogins(Problem):
    """Too many logins of this user or from this address failed. Try again after the time in `Retry-After` (seconds)."""

    status = 429
    title = "Too many failed logins"


class BadIdempotencyKey(Problem):
    """`Idempotency-Key` must be a single value of 1 to 255 printable ASCII characters, for example a UUID."""

    status = 400
    title = "Invalid idempotency key"


class StillUnderWay(Problem):
    """A request with this `Idempotency-Key` is still being processed. Send it again in a moment to get its response."""

    status = 409
    title = "Request in progress"


class AlreadyDone(Problem):
    """A request with this `Idempotency-Key` was already processed and is not repeated. Its response contained a secret or was too
    large, and was not stored: check the result, or send the request again with another key."""

    status = 409
    title = "Already processed"


class KeyOfAnother(Problem):
    """This `Idempotency-Key` was used for a different request (other URL or body). Use a new key for each request."""

    status = 422
    title = "Idempotency key reused"


def respond(request: Request, problem: Problem) -> Response:
    """The response for a problem."""
    body = ProblemDetails(
        type=f"{request.scope.get('root_path', '')}/problems/{problem.slug()}",
        title=problem.title,
        status=problem.status,
        detail=problem.detail,
        instance=request.url.path,
        trace_id=getattr(request.state, "trace_id", ""),
        errors=problem.errors or None,
        permission=problem.permission,
        current=problem.current,
    )
    return Response(_encode(body), status_code=problem.status, headers=problem.headers, media_type=MEDIA_TYPE)
