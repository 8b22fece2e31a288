"""Refuses unknown query parameters, as the API does: a misspelled filter would otherwise select everything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import Depends, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from menuwatch.core.errors import Refused
from menuwatch.web.forms import FormFields

LAYOUT = frozenset({"cursor", "from", "rows", "sort", "log", "level"})
"""Parameters that every screen takes: position, rows, order, levels of logs. They filter nothing."""


class Reads:
    """Dependency of a route that reads parameters from the request itself."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def __call__(self) -> None:
        """No-op: only the declared names matter."""


def reads(*names: str) -> Any:
    """For `dependencies=[reads("name", …)]` of a route."""
    return Depends(Reads(*names))


async def refuse_unknown(request: Request) -> None:
    """Dependency of every screen; raises Refused naming the first unknown parameter of a GET request of a user who is logged in."""
    if request.method != "GET" or not request.query_params or getattr(request.state, "principal", None) is None:
        return
    known = known_parameters(request.scope["route"])
    unknown = [
        name
        for name, value in request.query_params.multi_items()
        if name not in known and (name not in LAYOUT or (name == "from" and not value.isdecimal()))
    ]
    if unknown:
        names = ", ".join(sorted(known - LAYOUT | known & {"from"}))
        raise Refused(
            f"unknown parameter {unknown[0][:40]!r}; "
            + (f"use one of: {names}" if names else "this screen has no parameters")
        )


def known_parameters(route: APIRoute) -> frozenset[str]:
    """The query parameters that a route declares or reads."""
    names: set[str] = set()
    for one in _walk(route.dependant):
        names |= {parameter.alias for parameter in one.query_params}
        if isinstance(one.call, FormFields | Reads):
            names |= set(one.call.names)
    return frozenset(names)


def _walk(dependant: Dependant) -> Iterator[Dependant]:
    yield dependant
    for one in dependant.dependencies:
        yield from _walk(one)
