"""The words of a search: how a typed text falls into terms, and what the values of terms can be. Used by task_search.py."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

PRIORITY_MIN, PRIORITY_MAX = -1000, 1000
LONGEST = 200
"""Most characters of a text that is looked for."""

IDS_MAX = 1000
"""Most numbers in one term."""

Moment = datetime | timedelta
"""A time, or a time ago."""

_KEY = re.compile(r"(-?[A-Za-z_][\w.-]*):", re.ASCII)
_PLAIN = re.compile(r"[\w./%+=#@*(){}\[\]][\w./%+=#@*(){}\[\],;!?'<>|&~^$-]*")
_AGO = re.compile(r"-(\d{1,6})([mhd])", re.ASCII)
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
_DAY = timedelta(days=1)
_EARLIEST, _LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A part of the text that cannot be read, from `start` to before `end` (characters, from 0): what is wrong, what would be
    right."""

    start: int
    end: int
    wrong: str
    right: str

    def __str__(self) -> str:
        return f"at {self.start + 1}: {self.wrong}; {self.right}"


class Wrong(Exception):
    """A term cannot be read."""

    def __init__(self, wrong: str, right: str) -> None:
        super().__init__(wrong)
        self.wrong, self.right = wrong, right


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """`key:value`, or a bare text. `value_start` is where its value begins, with its quote if it is `quoted`."""

    key: str | None
    value: str
    quoted: bool
    start: int
    end: int
    value_start: int


def terms_of(text: str) -> Iterator[Term | Fault]:
    """The terms of a text, in its order."""
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
                yield Fault(start=at, end=until, wrong="text follows the closing quote", right="put a blank between")
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
    """What stands in the quotes that open there, and where they end; None where they are not closed."""
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
        wrong = "it holds a character that no text in the database has"
        return Fault(start=start, end=end, wrong=wrong, right="leave it out")
    return None


def quoted(value: str) -> str:
    """A value as it is written: in quotes where it must be."""
    if _PLAIN.fullmatch(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def one_text(term: Term) -> str:
    """The value of a qualifier that takes any text; raises Wrong for none."""
    if not term.value:
        raise Wrong(f"{term.key}: has no value", f"write it behind the colon, without a blank: {term.key}:…")
    return term.value


def words_of(term: Term) -> list[str]:
    """The values of a qualifier that takes several, separated by commas; raises Wrong."""
    words = [word.strip() for word in one_text(term).split(",")]
    if not all(words):
        raise Wrong("a value between commas is empty", f"{term.key}:one,other")
    return words


def numbers_of(term: Term, lowest: int, highest: int) -> list[int]:
    """Whole numbers, separated by commas; raises Wrong."""
    words = words_of(term)
    if len(words) > IDS_MAX:
        raise Wrong(f"it names {len(words):,} numbers", f"at most {IDS_MAX:,}")
    return [_number(word, lowest, highest, f"{term.key}:123,124") for word in words]


def _number(word: str, lowest: int, highest: int, example: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", word):
        raise Wrong(f"{word!r} is no whole number", example)
    number = int(word)
    if not lowest <= number <= highest:
        raise Wrong(f"{word} is out of range", f"from {lowest} to {highest}")
    return number


def _compared(value: str) -> tuple[str, str]:
    """The sign of a comparison (none: `=`), and what it stands before."""
    for sign in (">=", "<=", ">", "<"):
        if value.startswith(sign):
            return sign, value[len(sign) :]
    return "=", value.removeprefix("=")


def bounds_of(term: Term, lowest: int, highest: int) -> tuple[int | None, int | None]:
    """Lower and upper bound, both inclusive, of `>=10`, `<5`, `7`, `0..10`; raises Wrong."""
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
                raise Wrong(f"nothing is above {highest}", f"{term.key}:>={highest}")
            return number + 1, None
        case "<=":
            return None, number
        case "<":
            if number == lowest:
                raise Wrong(f"nothing is below {lowest}", f"{term.key}:<={lowest}")
            return None, number - 1
    return number, number


def moments_of(term: Term) -> tuple[Moment | None, Moment | None]:
    """From when, and before when, of `>2026-11-01`, `<=…`, a day, `2026-11-01..2026-11-05`, `>=-24h`; raises Wrong.

    A day is the whole of it: `>` begins with the next one, `<=` ends with the day.
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
    """The first moment of what was named, and the first one after it."""
    if ago := _AGO.fullmatch(word):
        length = int(ago[1]) * _UNITS[ago[2]]
        if length > timedelta(days=36_500):
            raise Wrong(f"{word} is longer ago than anything", "-24h, -7d")
        return length, length
    try:
        found = datetime.fromisoformat(word)
    except ValueError:
        raise Wrong(
            f"{word!r} is no time", "a day (2026-11-01), a time with offset (2026-11-01T10:00:00Z) or a time ago (-24h)"
        ) from None
    day = re.fullmatch(r"\d{4}-\d{2}-\d{2}", word) is not None
    if found.tzinfo is None:
        if not day:
            raise Wrong(f"{word} has no offset from UTC", f"{word}Z")
        found = found.replace(tzinfo=UTC)
    try:
        found = found.astimezone(UTC)
    except OverflowError:
        found = _LATEST
    if not _EARLIEST <= found <= _LATEST:
        raise Wrong(f"{word} is out of range", "a time from the year 2000 to 2099")
    return found, min(found + (_DAY if day else timedelta(microseconds=1)), _LATEST)


def moment_text(moment: Moment) -> str:
    """A moment as it is written: midnight (UTC) as its day."""
    if isinstance(moment, timedelta):
        minutes = round(moment / _UNITS["m"])
        for size, unit in ((1440, "d"), (60, "h")):
            if minutes and minutes % size == 0:
                return f"-{minutes // size}{unit}"
        return f"-{minutes}m"
    if moment == moment.replace(hour=0, minute=0, second=0, microsecond=0):
        return f"{moment:%Y-%m-%d}"
    return moment.isoformat().replace("+00:00", "Z")
