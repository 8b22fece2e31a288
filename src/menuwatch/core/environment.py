"""Settings as fields that say where they are read from: how one is declared, read from the environment, and described."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any

from menuwatch.core.errors import Refused


def setting(
    variable: str,
    default: Any,
    parse: Callable[[str], Any],
    doc: str,
    *,
    secret: bool = False,
    example: str | None = None,
) -> Any:
    """A field of a dataclass of settings. `secret`: its value is in no representation and no message. `example` is one that works,
    where the default, as a number, would say nothing."""
    if example is None and isinstance(default, int | float):
        example = f"{default:g}" if isinstance(default, float) else str(default)
    metadata = {"variable": variable, "parse": parse, "doc": doc, "secret": secret, "example": example}
    if callable(default):
        return dataclasses.field(default_factory=default, metadata=metadata, repr=not secret)
    return dataclasses.field(default=default, metadata=metadata, repr=not secret)


def values_of(settings: type[Any], environ: Mapping[str, str], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """What the environment says, by field; `overrides` win where they are not None, and what nobody says is left out.

    Raises Refused naming the variable, what it holds and what it may hold.
    """
    read: dict[str, Any] = {}
    for spec in dataclasses.fields(settings):
        if overrides.get(spec.name) is not None:
            read[spec.name] = overrides[spec.name]
            continue
        text = environ.get(spec.metadata["variable"])
        if text is None or text == "":
            continue
        try:
            read[spec.name] = spec.metadata["parse"](text)
        except ValueError as error:
            if spec.metadata["secret"]:
                raise Refused(f"{spec.metadata['variable']} cannot be used: {error}") from None
            example = spec.metadata["example"]
            such = f", for example {spec.metadata['variable']}={example}" if example else ""
            raise Refused(f"{spec.metadata['variable']}={text!r} cannot be used: {error}{such}") from error
    return read


def said_by(settings: Any) -> dict[str, str]:
    """What the environment has to say so that these settings are read from it; what has its default is left out.

    Raises ValueError for a value that no environment can say.
    """
    said: dict[str, str] = {}
    for spec in dataclasses.fields(settings):
        value = getattr(settings, spec.name)
        if value == (spec.default if spec.default_factory is dataclasses.MISSING else spec.default_factory()):
            continue
        if isinstance(value, tuple):
            text = ",".join(str(one) for one in value)
        else:
            text = json.dumps(dict(value)) if isinstance(value, Mapping) else str(value)
        if not text or spec.metadata["parse"](text) != value:
            raise ValueError(f"{spec.metadata['variable']} cannot be said in an environment")
        said[spec.metadata["variable"]] = text
    return said


def described(settings: type[Any]) -> list[tuple[str, str, str]]:
    """(variable, default, meaning) of every field, in order."""
    rows = []
    for spec in dataclasses.fields(settings):
        default = spec.default
        if spec.default_factory is not dataclasses.MISSING:
            default = spec.default_factory()
        shown = "" if default in (None, (), {}) else ",".join(default) if isinstance(default, tuple) else str(default)
        rows.append((spec.metadata["variable"], shown, spec.metadata["doc"]))
    return rows
