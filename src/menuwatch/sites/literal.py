"""Object literals of JavaScript, read without running them: what pages put behind `window.something = `.

Read are objects, arrays, strings of all three quotes (templates without `${}`), numbers of every notation, true, false, null, and
what minifiers make of them (`!0`, `!1`, `void 0`). Comments, commas at the end and keys without quotes are taken. Whatever would have
to be run (calls, names, sums, spreads) is refused. Of a key that comes twice, the last counts, as in JavaScript.

Reading takes time in proportion to the text, whatever the text: there is no recursion and no going back. It raises BadLiteral and
nothing else.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

MAX_CHARS = 8_000_000
"""Characters that one literal may have. Pages of the sites have a hundredth of that."""
MAX_DEPTH = 100
"""Levels of objects and arrays inside each other."""
MAX_VALUES = 500_000
"""Values in one literal, inner ones counted."""
MAX_DIGITS = 400
"""Characters of one number: more than any that fits into JavaScript's own."""

_GAP = re.compile(r"[\s\ufeff]+")
_LINE_END = re.compile(r"[\n\r\u2028\u2029]")
_WORD = re.compile(r"[^\W\d][\w$]*|\$[\w$]*")
_NUMBER = re.compile(
    r"0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9_]+)?"
)
_PLAIN = {
    '"': re.compile(r'[^"\\\n\r]+'),
    "'": re.compile(r"[^'\\\n\r]+"),
    "`": re.compile(r"[^`\\$]+"),
}
_SIMPLE = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}
_BRACED = re.compile(r"\{([0-9a-fA-F]{1,8})\}")
_HEX4 = re.compile(r"[0-9a-fA-F]{4}")
_HEX2 = re.compile(r"[0-9a-fA-F]{2}")
_NAMED: dict[str, bool | None] = {
    "true": True,
    "false": False,
    "null": None,
    "undefined": None,
    "NaN": None,
    "Infinity": None,
}
_NOT_A_VALUE = object()


class BadLiteral(ValueError):
    """The text is no literal that can be read. `at` is the position of the character that cannot be, counted from 0."""

    def __init__(self, why: str, at: int) -> None:
        super().__init__(f"{why} (character {at})")
        self.at = at


def read(text: str, start: int = 0) -> tuple[Any, int]:
    """The value that begins at `start`, after white space and comments, and the position behind it.

    Values are dict, list, str, int, Decimal (numbers with a fraction or an exponent, exactly as written), bool and None. None also
    stands for undefined, NaN, Infinity and holes of arrays. Halves of surrogate pairs become U+FFFD. Raises BadLiteral.
    """
    return _Reader(text, start).value()


class _Reader:
    __slots__ = ("_at", "_end", "_text", "_values")

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._at = start
        self._end = min(len(text), start + MAX_CHARS)
        self._values = 0

    def value(self) -> tuple[Any, int]:
        """Reads one value. `open_` holds the objects and arrays that are not closed yet, outermost first; `keys` the key that each of
        those objects waits for a value of."""
        open_: list[dict[str, Any] | list[Any]] = []
        keys: list[str] = []
        while True:
            found = self._one()
            if found is _NOT_A_VALUE:
                kind = self._text[self._at]
                self._at += 1
                if len(open_) >= MAX_DEPTH:
                    raise self._bad(f"more than {MAX_DEPTH} levels")
                fresh: dict[str, Any] | list[Any] = {} if kind == "{" else []
                open_.append(fresh)
                keys.append("")
                found = self._closed(open_, keys, first=True)
            while found is not _NOT_A_VALUE:
                if not open_:
                    return found, self._at
                whole = open_[-1]
                if isinstance(whole, dict):
                    whole[keys[-1]] = found
                else:
                    whole.append(found)
                found = self._closed(open_, keys, first=False)

    def _closed(self, open_: list[dict[str, Any] | list[Any]], keys: list[str], *, first: bool) -> Any:
        """The innermost object or array, where it ends here; else stands before its next value, whose key it notes."""
        whole = open_[-1]
        end = "}" if isinstance(whole, dict) else "]"
        char = self._next()
        if not first:
            if char == ",":
                self._at += 1
                char = self._next()
            elif char != end:
                raise self._bad(f"a comma or {end} was expected")
        if isinstance(whole, list):
            while char == ",":
                self._count()
                whole.append(None)
                self._at += 1
                char = self._next()
        if char == end:
            self._at += 1
            keys.pop()
            return open_.pop()
        if isinstance(whole, dict):
            keys[-1] = self._key(char)
            if self._next() != ":":
                raise self._bad("a colon was expected")
            self._at += 1
        return _NOT_A_VALUE

    def _key(self, char: str) -> str:
        if char in _PLAIN and char != "`":
            return self._string(char)
        if (match := _WORD.match(self._text, self._at, self._end)) is not None:
            self._at = match.end()
            return match[0]
        if char.isascii() and (char.isdigit() or char == "."):
            return str(self._number(1))
        raise self._bad("a key was expected")

    def _one(self) -> Any:
        """A value that has no parts, or _NOT_A_VALUE at the beginning of one that has."""
        char = self._next()
        self._count()
        if char in "{[":
            return _NOT_A_VALUE
        if char in _PLAIN:
            return self._string(char)
        if char in "+-":
            self._at += 1
            after = self._next()
            if after.isascii() and (after.isdigit() or after == "."):
                return self._number(-1 if char == "-" else 1)
            if _WORD.match(self._text, self._at, self._end) and self._word() in ("Infinity", "NaN"):
                return None
            raise self._bad("a number was expected")
        if char == "!":
            self._at += 1
            truth = self._next()
            self._at += 1
            if truth in "01" and _WORD.match(self._text, self._at, self._end) is None:
                return truth == "0"
            raise self._bad("!0 or !1 was expected")
        if char.isascii() and (char.isdigit() or char == "."):
            return self._number(1)
        return self._named()

    def _named(self) -> Any:
        if _WORD.match(self._text, self._at, self._end) is None:
            raise self._bad("a value was expected")
        word = self._word()
        if word == "void":
            if self._next() == "0":
                self._at += 1
                return None
        elif word in _NAMED:
            return _NAMED[word]
        raise self._bad("a name is no value")

    def _word(self) -> str:
        match = _WORD.match(self._text, self._at, self._end)
        assert match is not None, "whoever asks has looked"
        self._at = match.end()
        return match[0]

    def _number(self, sign: int) -> int | Decimal | None:
        match = _NUMBER.match(self._text, self._at, self._end)
        if match is None:
            raise self._bad("a number was expected")
        written = match[0]
        if len(written) > MAX_DIGITS:
            raise self._bad(f"a number of more than {MAX_DIGITS} characters")
        self._at = match.end()
        if self._text[self._at : self._at + 1] == "n" and self._at < self._end:
            self._at += 1
            if not written.isalnum():
                raise self._bad("a fraction cannot be a whole number")
        if self._at < self._end and (self._text[self._at].isalnum() or self._text[self._at] in "_$."):
            raise self._bad("a number ends in something else")
        digits = written.replace("_", "")
        if digits.isdigit():
            if len(digits) > 1 and digits[0] == "0":
                raise self._bad("a number that begins with 0 may mean another")
            return sign * int(digits)
        try:
            if digits[:2].lower() in ("0x", "0o", "0b"):
                return sign * int(digits, 0)
            # Beyond these it is infinite or nothing in JavaScript, and as a Decimal it could fill the memory of who rounds it.
            double = float(digits)
            if double in (0.0, float("inf")):
                return Decimal(0) if double == 0.0 else None
            return sign * Decimal(digits)
        except (ValueError, ArithmeticError):
            raise self._bad("a number was expected") from None

    def _string(self, quote: str) -> str:
        """The text of the string that begins here."""
        text, end, plain = self._text, self._end, _PLAIN[quote]
        begun = at = self._at
        at += 1
        parts: list[str] = []
        odd = False
        while at < end:
            if (match := plain.match(text, at, end)) is not None:
                parts.append(match[0])
                at = match.end()
                continue
            char = text[at]
            if char == quote:
                self._at = at + 1
                found = "".join(parts)
                return _whole(found) if odd else found
            if char == "\\":
                piece, at = self._escape(at + 1)
                odd = odd or "\ud800" <= piece <= "\udfff"
                parts.append(piece)
            elif char == "$":
                if text[at + 1 : at + 2] == "{":
                    raise self._bad("a template with a part that would have to be run", at)
                parts.append(char)
                at += 1
            else:
                raise self._bad("a string breaks off at the end of its line", at)
        raise self._bad("a string without an end" if end == len(text) else f"more than {MAX_CHARS} characters", begun)

    def _escape(self, at: int) -> tuple[str, int]:
        """What a backslash before `at` makes of what follows, and the position behind it."""
        text, end = self._text, self._end
        if at >= end:
            raise self._bad("a string without an end", at)
        char = text[at]
        if char == "u":
            if (match := _HEX4.match(text, at + 1, end)) is not None:
                return chr(int(match[0], 16)), match.end()
            match = _BRACED.match(text, at + 1, end)
            if match is None or (code := int(match[1], 16)) > 0x10FFFF:
                raise self._bad("\\u without a character's number", at)
            return chr(code), match.end()
        if char == "x":
            if (match := _HEX2.match(text, at + 1, end)) is None:
                raise self._bad("\\x without a character's number", at)
            return chr(int(match[0], 16)), match.end()
        if char == "\r":
            return "", at + (2 if text[at + 1 : at + 2] == "\n" else 1)
        if char in "\n\u2028\u2029":
            return "", at + 1
        if char in "0123456789" and (char != "0" or text[at + 1 : at + 2] in tuple("0123456789")):
            raise self._bad("a backslash before a digit may mean several things", at)
        return _SIMPLE.get(char, char), at + 1

    def _next(self) -> str:
        """The character that stands next, behind white space and comments."""
        text, end = self._text, self._end
        while self._at < end:
            if (match := _GAP.match(text, self._at, end)) is not None:
                self._at = match.end()
                continue
            if text[self._at] != "/":
                return text[self._at]
            if text.startswith("//", self._at):
                line = _LINE_END.search(text, self._at, end)
                self._at = end if line is None else line.end()
            elif text.startswith("/*", self._at):
                closed = text.find("*/", self._at + 2, end)
                if closed < 0:
                    raise self._bad("a comment without an end")
                self._at = closed + 2
            else:
                return "/"
        raise self._bad("it breaks off" if end == len(text) else f"more than {MAX_CHARS} characters")

    def _count(self) -> None:
        self._values += 1
        if self._values > MAX_VALUES:
            raise self._bad(f"more than {MAX_VALUES} values")

    def _bad(self, why: str, at: int | None = None) -> BadLiteral:
        return BadLiteral(why, self._at if at is None else at)


def _whole(text: str) -> str:
    """The text with its surrogate pairs joined and what is left of them replaced: neither may reach a database."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
