"""Error messages for invalid values of requests: what is allowed, and what was given. Pure.

A value is repeated where a number, choice, flag or time is expected, and never if it is an address or the name of its field
suggests a secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from menuwatch.core.errors import unknown_value
from menuwatch.core.format import decimal, pluralize

LONGEST_VALUE = 60
"""Characters of a given value that a message repeats."""

_SECRET = re.compile(r"pass|secret|token|key|credential|auth|cookie|url|address", re.IGNORECASE)
_BOUNDS = {
    "greater_than": ("greater than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}
_DIGITS = {
    "decimal_max_digits": ("max_digits", "digit", "digits"),
    "decimal_whole_digits": ("whole_digits", "digit before the decimal point", "digits before the decimal point"),
    "decimal_max_places": ("decimal_places", "decimal place", "decimal places"),
}
_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "decimal": "a number",
    "finite": "a finite number",
    "bool": "true or false",
    "string": "text",
    "list": "a list",
    "dict": "an object",
    "model": "an object",
}
"""The expected type, by the first word of the kind of an error."""


def describe(fault: Mapping[str, Any]) -> str:
    """The message for one validation error, without the name of the field: what is allowed, and what was given."""
    kind, value, context = str(fault["type"]), fault.get("input"), fault.get("ctx") or {}
    given = _given(fault["loc"], value)
    number = given.strip("'")
    if kind in ("value_error", "assertion_error"):
        return str(fault["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")
    if kind == "extra_forbidden":
        return "unknown"
    if kind == "missing":
        return "is required"
    if kind in ("enum", "literal_error"):
        return _not_a_choice(given, value, str(context["expected"]))
    if kind in _BOUNDS:
        words, name = _BOUNDS[kind]
        return f"must be {words} {_number(context[name])}{_but(number)}"
    if kind in _DIGITS:
        name, *nouns = _DIGITS[kind]
        return f"must have at most {pluralize(context[name], *nouns)}{_but(number)}"
    if kind in ("string_too_short", "too_short", "string_too_long", "too_long"):
        return _length(kind.endswith("short"), context, value)
    if kind == "string_pattern_mismatch":
        return f"must match the pattern {context['pattern']}"
    if kind.startswith(("timezone_", "datetime_", "date_", "time_")):
        return _not_a_time(kind, context, value, given)
    if kind == "string_unicode":
        return "must be valid Unicode text"
    if kind == "int_parsing_size":
        return "has too many digits"
    wanted = _TYPES.get(kind.partition("_")[0])
    if wanted in ("a list", "an object") and isinstance(value, str):
        given = "text"  # such as a proxy or a webhook, with its password
    if wanted is None:
        return f"has an invalid value: {given}" if given else "has an invalid value"
    return f"must be {wanted}{_but(given)}"


def _but(given: str) -> str:
    return f", not {given}" if given else ""


def _given(location: Sequence[Any], value: Any) -> str:
    """The value as the sender wrote it, or its type; empty if it may be a secret."""
    match value:
        case None | True | False:
            return {None: "null", True: "true", False: "false"}[value]
        case Mapping():
            return "an object"
        case list() | tuple():
            return "a list"
    if any(_SECRET.search(str(part)) for part in location) or (isinstance(value, str) and "://" in value):
        return ""
    if isinstance(value, str):
        return repr(value if len(value) <= LONGEST_VALUE else value[:LONGEST_VALUE] + "…")
    return _number(value) if isinstance(value, (int, float, Decimal)) else ""


def _number(value: Any) -> str:
    text = decimal(value) if isinstance(value, float) and abs(value) < 10**15 else str(value)
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "…"


def _not_a_choice(given: str, value: Any, expected: str) -> str:
    """`expected` is such as `'asc', 'desc' or 'none'`."""
    known = re.findall(r"'([^']*)'", expected) or re.split(r", | or ", expected)
    if not isinstance(value, str) or not given:
        return f"must be one of: {', '.join(known)}"
    return unknown_value("value", value[:LONGEST_VALUE], known)


def _length(short: bool, context: Mapping[str, Any], value: Any) -> str:
    bound = int(context["min_length" if short else "max_length"])
    noun = "character" if isinstance(value, str) else "item"
    said = f"must have at {'least' if short else 'most'} {pluralize(bound, noun).replace(',', '')}"
    return f"{said}, not {len(value)}" if isinstance(value, (list, tuple)) else said


def _not_a_time(kind: str, context: Mapping[str, Any], value: Any, given: str) -> str:
    subject = f"{given} is" if isinstance(value, str) and given else "is"
    if kind == "timezone_aware":
        example = value if isinstance(value, str) and "T" in value and len(value) <= 26 else "2026-11-20T14:30:00"
        if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value):
            return f"is a date without a time and UTC offset: write it as {value}T00:00:00Z"
        return f"has no UTC offset: write it as {example}Z or {example}+01:00"
    if kind.startswith("datetime_"):
        reason = str(context.get("error", ""))
        because = f" ({reason})" if "outside" in reason else ""
        return (
            f"{subject} not a valid date and time{because}: write it as 2026-11-20T14:30:00Z, or with a UTC offset such as "
            "+01:00"
        )
    if kind.startswith("date_"):
        return f"{subject} not a valid date: write it as 2026-11-20"
    return f"{subject} not a valid time of day: write it as 14:30"
