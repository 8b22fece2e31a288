"""Tokenize a search query into terms, and parse the values of terms. Used by search.py."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from msgspec import Struct

LONGEST = 200
"""Longest search text, in characters."""

IDS_MAX = 1000
"""Most ids in one term."""

Moment = datetime | timedelta
"""An absolute or a relative time."""

_KEY = re.compile(r"(-?[A-Za-z_][\w.-]*):", re.ASCII)
_PLAIN = re.compile(r"[\w./%+=#@*(){}\[\]][\w./%+=#@*(){}\[\],;!?'<>|&~^$-]*")
_AGO = re.compile(r"-(\d{1,6})([mhd])", re.ASCII)
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
_DAY = timedelta(days=1)
_EARLIEST, _LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


class Fault(Struct, frozen=True, kw_only=True):
    """An invalid part of the query, from `start` to before `end` (characters, from 0), with what is wrong and what to write
    instead."""

    start: int
    end: int
    wrong: str
    right: str

    def __str__(self) -> str:
        return f"at {self.start + 1}: {self.wrong}; {self.right}"


class Wrong(Exception):
    """An invalid term."""

    def __init__(self, wrong: str, right: str) -> None:
        super().__init__(wrong)
        self.wrong, self.right = wrong, right


class Term(Struct, frozen=True, kw_only=True):
    """`key:value`, or plain text. `value_start` is the position of its value, including the quote if it is `quoted`."""

    key: str | None
    value: str
    quoted: bool
    start: int
    end: int
    value_start: int


def terms_of(text: str) -> Iterator[Term | Fault]:
    """The terms of a query, in order."""
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        start = at
        key = _KEY.match(text, at)
        at = key.end() if key else at
        begun = at
        if at < len(text) and text[at] == '"':
            value, at = _quoted_at(text, at)
            if value is None:
                yield Fault(start=begun, end=at, wrong="the quote is not closed", right='close it with "')
                continue
            if at < len(text) and not text[at].isspace():
                until = _word_end(text, at)
                yield Fault(start=at, end=until, wrong="text follows the closing quote", right="insert a space")
                at = until
                continue
        else:
            at = _word_end(text, at)
            value = text[begun:at]
        if fault := _unstorable(value, start, at):
            yield fault
            continue
        yield Term(
            key=key[1] if key else None,
            value=value,
            quoted=text[begun : begun + 1] == '"',
            start=start,
            end=at,
            value_start=begun,
        )


def _word_end(text: str, at: int) -> int:
    while at < len(text) and not text[at].isspace():
        at += 1
    return at


def _quoted_at(text: str, at: int) -> tuple[str | None, int]:
    """The text in the quotes that open at that position, and where they end; None if they are not closed."""
    out: list[str] = []
    at += 1
    while at < len(text):
        char = text[at]
        if char == '"':
            return "".join(out), at + 1
        if char == "\\" and text[at + 1 : at + 2] in ('"', "\\"):
            at += 1
            char = text[at]
        out.append(char)
        at += 1
    return None, at


def _unstorable(value: str, start: int, end: int) -> Fault | None:
    if len(value) > LONGEST:
        return Fault(start=start, end=end, wrong=f"it has {len(value):,} characters", right=f"at most {LONGEST}")
    if "\0" in value or any("\ud800" <= char <= "\udfff" for char in value):
        wrong = "it contains a NUL character or an unpaired surrogate"
        return Fault(start=start, end=end, wrong=wrong, right="leave it out")
    return None


def quoted(value: str) -> str:
    """The value, in quotes if necessary."""
    if _PLAIN.fullmatch(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def one_text(term: Term) -> str:
    """Value of a qualifier that takes any text; raises Wrong if it is empty."""
    if not term.value:
        raise Wrong(f"{term.key}: has no value", f"write the value directly after the colon: {term.key}:…")
    return term.value


def words_of(term: Term) -> list[str]:
    """Comma-separated values of a qualifier; raises Wrong."""
    words = [word.strip() for word in one_text(term).split(",")]
    if not all(words):
        raise Wrong("a value between commas is empty", f"{term.key}:one,other")
    return words


def numbers_of(term: Term, lowest: int, highest: int) -> list[int]:
    """Comma-separated integers; raises Wrong."""
    words = words_of(term)
    if len(words) > IDS_MAX:
        raise Wrong(f"it names {len(words):,} numbers", f"at most {IDS_MAX:,}")
    return [_number(word, lowest, highest, f"{term.key}:123,124") for word in words]


def _number(word: str, lowest: int, highest: int, example: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", word):
        raise Wrong(f"{word!r} is not a whole number", example)
    number = int(word)
    if not lowest <= number <= highest:
        raise Wrong(f"{word} is out of range", f"from {lowest} to {highest}")
    return number


_DURATION = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)(ms|s|min|m|h)", re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def durations_of(term: Term) -> tuple[float | None, float | None]:
    """Parse `>30s`, `<500ms`, `2s..1m` into a shortest and a longest duration in seconds, both exclusive; raises Wrong."""
    value = one_text(term)
    if ".." in value:
        first, _, last = value.partition("..")
        low, high = _seconds(first, term), _seconds(last, term)
        if low >= high:
            raise Wrong(f"{first} is not less than {last}", f"{term.key}:{last}..{first}")
        return low, high
    sign, rest = _compared(value)
    if sign == "=":
        raise Wrong("a duration needs a direction", f"{term.key}:>{rest} or {term.key}:<{rest}")
    seconds = _seconds(rest, term)
    return (seconds, None) if sign.startswith(">") else (None, seconds)


def _seconds(word: str, term: Term) -> float:
    if (match := _DURATION.fullmatch(word)) is None:
        raise Wrong(f"{word!r} is not a duration", f"{term.key}:>30s, {term.key}:<500ms, {term.key}:1m..5m")
    return round(float(match[1]) * _SECONDS[match[2]], 3)


def duration_text(seconds: float) -> str:
    """Format a duration: `500ms`, `30s`."""
    return (
        f"{round(seconds * 1000)}ms"
        if seconds < 1
        else f"{seconds:g}s"
        if seconds < 100_000
        else f"{seconds / 3600:.3f}h"
    )


def _compared(value: str) -> tuple[str, str]:
    """Split a comparison into its operator (none: `=`) and its operand."""
    for sign in (">=", "<=", ">", "<"):
        if value.startswith(sign):
            return sign, value[len(sign) :]
    return "=", value.removeprefix("=")


def bounds_of(term: Term, lowest: int, highest: int) -> tuple[int | None, int | None]:
    """Parse `>=10`, `<5`, `7`, `0..10` into a lower and an upper bound, both inclusive; raises Wrong."""
    example = f"{term.key}:>=10, {term.key}:0..10"
    value = one_text(term)
    if ".." in value:
        first, _, last = value.partition("..")
        low, high = _number(first, lowest, highest, example), _number(last, lowest, highest, example)
        if low > high:
            raise Wrong(f"{low} is more than {high}", f"{term.key}:{high}..{low}")
        return low, high
    sign, rest = _compared(value)
    number = _number(rest, lowest, highest, example)
    match sign:
        case ">=":
            return number, None
        case ">":
            if number == highest:
                raise Wrong(f"{rest} is out of range", f"{term.key}:>={highest}")
            return number + 1, None
        case "<=":
            return None, number
        case "<":
            if number == lowest:
                raise Wrong(f"{rest} is out of range", f"{term.key}:<={lowest}")
            return None, number - 1
    return number, number


def moments_of(term: Term) -> tuple[Moment | None, Moment | None]:
    """Parse `>2026-11-01`, `<=…`, a day, `2026-11-01..2026-11-05`, `>=-24h` into a start and an exclusive end; raises Wrong.

    Days are whole: `>` begins with the next day, `<=` ends with the day.
    """
    value = one_text(term)
    if ".." in value:
        first, _, last = value.partition("..")
        (after, _), (_, before) = _span(first), _span(last)
        if isinstance(after, datetime) and isinstance(before, datetime) and after >= before:
            raise Wrong("it ends before it begins", f"{term.key}:{last}..{first}")
        return after, before
    sign, rest = _compared(value)
    start, end = _span(rest)
    match sign:
        case ">=":
            return start, None
        case ">":
            return (start if isinstance(start, timedelta) else end), None
        case "<=":
            return None, end
        case "<":
            return None, start
    if isinstance(start, timedelta):
        raise Wrong("a time ago needs a direction", f"{term.key}:>={rest} (since then) or {term.key}:<{rest}")
    return start, end


def _span(word: str) -> tuple[Moment, Moment]:
    """First moment of the named day or time, and the first one after it."""
    if ago := _AGO.fullmatch(word):
        length = int(ago[1]) * _UNITS[ago[2]]
        if length > timedelta(days=36_500):
            raise Wrong(f"{word} is too long ago", "-24h, -7d")
        return length, length
    try:
        moment = datetime.fromisoformat(word)
    except ValueError:
        raise Wrong(
            f"{word!r} is not a time",
            "a day (2026-11-01), a time with offset (2026-11-01T10:00:00Z) or a time ago (-24h)",
        ) from None
    day = re.fullmatch(r"\d{4}-\d{2}-\d{2}", word) is not None
    if moment.tzinfo is None:
        if not day:
            raise Wrong(f"{word} has no UTC offset", f"{word}Z")
        moment = moment.replace(tzinfo=UTC)
    try:
        moment = moment.astimezone(UTC)
    except OverflowError:
        moment = _LATEST
    if not _EARLIEST <= moment <= _LATEST:
        raise Wrong(f"{word} is out of range", "a time from the year 2000 to 2099")
    return moment, min(moment + (_DAY if day else timedelta(microseconds=1)), _LATEST)


def moment_text(moment: Moment) -> str:
    """Format a time: midnight (UTC) as its day."""
    if isinstance(moment, timedelta):
        minutes = round(moment / _UNITS["m"])
        for size, unit in ((1440, "d"), (60, "h")):
            if minutes and minutes % size == 0:
                return f"-{minutes // size}{unit}"
        return f"-{minutes}m"
    if moment == moment.replace(hour=0, minute=0, second=0, microsecond=0):
        return f"{moment:%Y-%m-%d}"
    return moment.isoformat().replace("+00:00", "Z")
