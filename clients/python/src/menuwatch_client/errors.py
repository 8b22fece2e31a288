"""Errors of the client. Those of the API carry its problem document (RFC 9457)."""

from __future__ import annotations

from collections.abc import Mapping

from menuwatch_client.models import ProblemDetails


class MenuwatchError(Exception):
    """Any error of the client."""


class ConfigurationError(MenuwatchError, ValueError):
    """The client was created with an address or token that cannot be used."""


class ConnectionFailed(MenuwatchError):
    """The server could not be reached, or did not respond in time; `__cause__` is the error of httpx."""


class InvalidResponse(MenuwatchError):
    """The response is not what the API describes: another program responds at this address, or a newer server."""


class ApiError(MenuwatchError):
    """The API refused a request. `problem` is its problem document, `headers` those of the response."""

    def __init__(self, problem: ProblemDetails, headers: Mapping[str, str]) -> None:
        super().__init__(f"{problem.status} {problem.title}: {problem.detail}")
        self.problem = problem
        self.headers = headers

    @property
    def status(self) -> int:
        """HTTP status."""
        return self.problem.status


class InvalidRequest(ApiError):
    """400, 413, 415 or 422: `problem.errors` lists the invalid values."""


class NotAuthenticated(ApiError):
    """401: no token, or one that is invalid, expired or revoked."""


class PermissionDenied(ApiError):
    """403: `problem.permission` is the missing permission."""


class NotFound(ApiError):
    """404: the resource does not exist."""


class Conflict(ApiError):
    """409: the state of the resource does not allow the request."""


class PreconditionFailed(ApiError):
    """412: the resource was changed since it was read; `problem.current` is its current state."""


class TooManyRequests(ApiError):
    """429: refused because of too many requests, also after the retries."""


class ServerError(ApiError):
    """5xx: the server failed or is unavailable, also after the retries."""


_BY_STATUS: Mapping[int, type[ApiError]] = {
    400: InvalidRequest,
    401: NotAuthenticated,
    403: PermissionDenied,
    404: NotFound,
    409: Conflict,
    412: PreconditionFailed,
    413: InvalidRequest,
    415: InvalidRequest,
    422: InvalidRequest,
    429: TooManyRequests,
}


def error_of(problem: ProblemDetails, headers: Mapping[str, str]) -> ApiError:
    """The error for a problem document."""
    kind = _BY_STATUS.get(problem.status, ServerError if problem.status >= 500 else ApiError)
    return kind(problem, headers)
