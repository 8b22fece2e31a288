"""Options that several commands have: listed once, as the fields of a dataclass."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, get_type_hints

P = ParamSpec("P")
R = TypeVar("R")


def spread(command: Callable[P, R]) -> Callable[..., R]:
    """For a parameter whose type is a dataclass the command has an option for each of its fields (`Annotated`, as Typer takes them),
    in that parameter's place, and is called with the dataclass that they make."""
    hints = get_type_hints(command, include_extras=True)
    sets: dict[str, tuple[Any, list[str]]] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        kind = hints[name]
        if not dataclasses.is_dataclass(kind):
            parameters.append(parameter.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        types = get_type_hints(kind, include_extras=True)
        fields = [spec for spec in dataclasses.fields(kind) if spec.init]
        sets[name] = kind, [spec.name for spec in fields]
        parameters += [
            inspect.Parameter(
                spec.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if spec.default is dataclasses.MISSING else spec.default,
                annotation=types[spec.name],
            )
            for spec in fields
        ]

    @functools.wraps(command)
    def spread_out(**given: Any) -> R:
        made = {name: kind(**{field: given.pop(field) for field in fields}) for name, (kind, fields) in sets.items()}
        whole: Callable[..., R] = command
        return whole(**given, **made)

    spread_out.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return spread_out
