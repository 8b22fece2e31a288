"""Client of the Menuwatch API: stores, menus, price history and reports."""

from menuwatch_client import models
from menuwatch_client._version import __version__
from menuwatch_client.client import AsyncClient, Client
from menuwatch_client.core import Retries
from menuwatch_client.errors import (
    ApiError,
    ConfigurationError,
    Conflict,
    ConnectionFailed,
    InvalidRequest,
    InvalidResponse,
    MenuwatchError,
    NotAuthenticated,
    NotFound,
    PermissionDenied,
    PreconditionFailed,
    ServerError,
    TooManyRequests,
)
from menuwatch_client.pages import AsyncPages, Page, Pages
from menuwatch_client.tables import to_arrow, to_pandas, to_polars

__all__ = [
    "ApiError",
    "AsyncClient",
    "AsyncPages",
    "Client",
    "ConfigurationError",
    "Conflict",
    "ConnectionFailed",
    "InvalidRequest",
    "InvalidResponse",
    "MenuwatchError",
    "NotAuthenticated",
    "NotFound",
    "Page",
    "Pages",
    "PermissionDenied",
    "PreconditionFailed",
    "Retries",
    "ServerError",
    "TooManyRequests",
    "__version__",
    "models",
    "to_arrow",
    "to_pandas",
    "to_polars",
]
