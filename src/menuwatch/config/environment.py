"""Settings as dataclass fields: declared, read from environment variables, written as such, and described."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from menuwatch.core.errors import Refused


def setting(
    default: Any,
    parse: Callable[[str], Any],
    doc: str,
    *,
    secret: bool = False,
    example: str | None = None,
    variable: str | None = None,
) -> Any:
    """A field of a dataclass of settings. `secret`: its value is in no representation and no message. `example`: a valid value, where
    the default is not a number. `variable` is the upper-case name of the field by default."""
    if example is None and isinstance(default, int | float):
        example = f"{default:g}" if isinstance(default, float) else str(default)
    metadata = {"variable": variable, "parse": parse, "doc": doc, "secret": secret, "example": example}
    if callable(default):
        return dataclasses.field(default_factory=default, metadata=metadata, repr=not secret)
    return dataclasses.field(default=default, metadata=metadata, repr=not secret)


def fields(settings: Any, prefix: str = "") -> Iterator[tuple[str, Any, dataclasses.Field[Any]]]:
    """(variable, default, field) of every setting with a variable of its own, in order. `prefix` begins every variable."""
    for field in dataclasses.fields(settings):
        if "parse" not in field.metadata:
            continue
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        yield prefix + (field.metadata["variable"] or field.name.upper()), default, field


_LOGIN = re.compile(r"//[^/?#]*@")
"""User and password in a URL, which must not be shown in errors."""


def parse_environ(
    settings: type[Any], environ: Mapping[str, str], overrides: Mapping[str, Any], prefix: str = ""
) -> dict[str, Any]:
    """Values from the environment, by field; `overrides` that are not None take precedence, unset variables are left out. `prefix`
    begins every variable.

    Raises Refused naming the variable, its value and the valid values.
    """
    values = {name: value for name, value in overrides.items() if value is not None}
    for variable, _, field in fields(settings, prefix):
        text = environ.get(variable)
        if field.name in values or not text:
            continue
        try:
            values[field.name] = field.metadata["parse"](text)
        except ValueError as error:
            if field.metadata["secret"]:
                raise Refused(f"invalid {variable}: {error}") from None
            example = field.metadata["example"]
            hint = f", for example {variable}={example}" if example else ""
            raise Refused(f"invalid {variable}={_LOGIN.sub('//…@', text)!r}: {error}{hint}") from error
    return values


def format_environ(settings: Any) -> dict[str, str]:
    """Environment variables from which these settings can be read again; fields at their default are left out.

    Raises ValueError for a value that cannot be written as an environment variable.
    """
    environ: dict[str, str] = {}
    for variable, default, field in fields(settings):
        value = getattr(settings, field.name)
        if value == default:
            continue
        text = format_value(value)
        if not text or field.metadata["parse"](text) != value:
            raise ValueError(f"{variable} cannot be written as an environment variable")
        environ[variable] = text
    return environ


def format_value(value: Any) -> str:
    """The text of an environment variable that is read as this value."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return json.dumps(dict(value)) if isinstance(value, Mapping) else str(value)


def describe(settings: type[Any], prefix: str = "") -> list[tuple[str, str, str]]:
    """(variable, default, meaning) of every field, in order. `prefix` begins every variable."""
    return [
        (variable, _default_text(default), field.metadata["doc"])
        for variable, default, field in fields(settings, prefix)
    ]


def _default_text(default: Any) -> str:
    if default in (None, (), {}):
        return ""
    return ",".join(default) if isinstance(default, tuple) else str(default)
