"""Reads JSON that a strict decoder refuses: repairs its escapes, and parses as much as possible; and repairs items that do not fit
their types: invalid values are removed with a warning, the rest is kept. Pure.

An item is only repaired after it was refused (by the strict decoder, for a text with NUL, or for a number out of bounds), so that may
be slow: the item is parsed as plain JSON, and each offending value is replaced by null until the decoder accepts it.

If the name, a price or the stock cannot be read, the item is dropped: the product would otherwise seem to have lost its price or
stock, and the stored values are more likely correct.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Any, Generic, TypeVar

import msgspec

from menuwatch.catalog.model import ProductWarning
from menuwatch.catalog.taxonomy.limits import find_out_of_range, shorten, shorten_id
from menuwatch.core.json_bounds import TooManyValues

_MAX_ESCAPES = 100_000
"""Maximum escapes repaired per text; recorded menus have a few. Each costs a loop iteration."""

_PAIR = rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_HALF = rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
_NUL = rb"\\u0000"
_PIECES = re.compile(
    # Matches everything to keep: text, whole pairs, and other escapes, so that the u after an escaped backslash is not mistaken
    # for one.
    rb"(?:[^\\]++|%b|(?!%b|%b)\\.)++" % (_PAIR, _HALF, _NUL) + rb"|(?P<half>%b)|(?P<nul>%b)" % (_HALF, _NUL),
    re.DOTALL,
)


REPLACED = rb"\uFFFD"
"""What stands for half a surrogate pair. Encoders write small digits, so that a text that `fix_escapes` changed can be recognized."""


def fix_escapes(body: bytes, *, keep_nul: bool = False) -> bytes:
    """JSON text with lone surrogates replaced by U+FFFD (written as REPLACED) and, unless `keep_nul`, NUL removed.

    Emoji that were cut in the middle are valid JSON by grammar and refused by every strict decoder. Raises TooManyValues for more
    of them than cut emoji explain.
    """
    # One buffer, since the pieces of a hostile body would be many times larger than the body.
    mended, at, count = bytearray(), 0, 0
    for match in _PIECES.finditer(body):
        if match.lastgroup is None or (keep_nul and match.lastgroup == "nul"):
            continue
        count += 1
        if count > _MAX_ESCAPES:
            raise TooManyValues(f"more than {_MAX_ESCAPES:,} escapes that no text holds")
        mended += memoryview(body)[at : match.start()]
        if match.lastgroup == "half":
            mended += REPLACED
        at = match.end()
    if not at:
        return body
    mended += memoryview(body)[at:]
    return bytes(mended)


_LONGEST_INTEGER = 400
"""Maximum digits; Python refuses to read an integer of more than 4,300."""


def read_leniently(raw: bytes) -> Any:
    """Parses JSON with exact numbers. Invalid UTF-8 becomes U+FFFD, and NaN or Infinity its own text, so that
    no decoder accepts it as a number.

    Raises ValueError for invalid JSON, RecursionError for too deep nesting.
    """
    return json.loads(
        raw.decode("utf-8", "replace"), parse_float=_fraction, parse_int=_whole, parse_constant=lambda name: name
    )


def _fraction(text: str) -> Decimal | str:
    try:
        return Decimal(text)
    except ArithmeticError:
        return text  # an exponent of twenty digits


def _whole(text: str) -> int | Decimal:
    return int(text) if len(text) <= _LONGEST_INTEGER else Decimal(text)


def has_unusable_text(raw: bytes) -> bool:
    """Whether an item that decodes may hold a text that no column can store as it came: NUL, or a character that was replaced."""
    return rb"\u0000" in raw or REPLACED in raw


def storable(value: Any) -> Any:
    """The value without what text columns refuse: NUL is removed, lone surrogates become U+FFFD."""
    if isinstance(value, str):
        return value.replace("\0", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [storable(entry) for entry in value]
    if isinstance(value, dict):
        return {storable(key): storable(entry) for key, entry in value.items()}
    return value


_MOST_FAULTS = 50
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_encoder = msgspec.json.Encoder(decimal_format="number")

T = TypeVar("T", bound=msgspec.Struct)


class JsonRepairer(Generic[T]):
    """Repairs items of one type.

    `essential` are the fields (dotted paths) without which an item is not a product; numbers in `judged` fields are checked where
    they are used, not here. `identity` gives the id of a plain item.
    """

    def __init__(
        self,
        target: type[T],
        *,
        essential: Iterable[str],
        judged: Iterable[str] = (),
        identity: Callable[[dict[str, Any]], str | None],
    ) -> None:
        self._decoder = msgspec.json.Decoder(target)
        self._fields = target.__struct_encode_fields__
        self._essential = frozenset(tuple(path.split(".")) for path in essential)
        self._judged = frozenset(tuple(path.split(".")) for path in judged)
        self._identity = identity

    def repair(self, raw: bytes) -> tuple[T | None, list[ProductWarning]]:
        """The item without its unusable values, and a warning for each; None and one fatal warning if nothing usable is left."""
        try:
            content = read_leniently(raw)
        except ValueError as error:
            return None, [ProductWarning(None, "", f"is no JSON: {error}", fatal=True)]
        if not isinstance(content, dict):
            return None, [ProductWarning(None, "", f"expected an object, got {_kind(content)}", fatal=True)]
        # Unread fields may hold anything.
        plain = {name: storable(content[name]) for name in self._fields if name in content}
        faults: list[tuple[str, str]] = []
        while len(faults) < _MOST_FAULTS:
            try:
                item = self._decoder.decode(_encoder.encode(plain))
            except msgspec.ValidationError as error:
                path, message = _parse(str(error))
                steps: list[str | int] = [
                    name or ("..." if index == "..." else int(index)) for name, index in _STEP.findall(f".{path}")
                ]
                if not steps or _within(steps, self._essential) or not _leave_out(plain, steps):
                    return None, [self._fatal(plain, path, message)]
                faults.append((path, message))
            except (ValueError, msgspec.MsgspecError) as error:
                return None, [self._fatal(plain, "", str(error))]
            else:
                beyond = [(at, value) for at, value in find_out_of_range(item) if not _within(at, self._judged)]
                if not beyond:
                    name = shorten_id(self._identity(plain))
                    warnings = [ProductWarning(name, path, f"{message}; left out") for path, message in faults]
                    warnings += [ProductWarning(name, path, text) for path, text in _changed_texts(raw, content, item)]
                    return item, warnings
                for at, value in beyond:
                    if _within(at, self._essential):
                        return None, [self._fatal(plain, _path(at), f"{shorten(value)} is out of bounds")]
                    _leave_out(plain, list(at))
                    faults.append((_path(at), f"{shorten(value)} is out of bounds"))
        path, message = faults[0]
        return None, [self._fatal(plain, path, f"{message}, and more than {_MOST_FAULTS} other faults")]

    def _fatal(self, plain: dict[str, Any], path: str, message: str) -> ProductWarning:
        return ProductWarning(shorten_id(self._identity(plain)), path, message, fatal=True)


def _changed_texts(raw: bytes, content: Any, item: msgspec.Struct) -> Iterator[tuple[str, str]]:
    """(path, what happened) of each text of a repaired item that differs from what the platform sent; at most 50."""
    count = 0
    replaced = REPLACED in raw or not _is_utf8(raw)
    for at, text in _texts(item):
        original = _value_at(content, at)
        if not isinstance(original, str):
            continue
        if "\0" in original:
            message = "contains NUL, which is removed"
        elif original != text or (replaced and "\ufffd" in text):
            message = "contains an invalid character; replaced by U+FFFD"
        else:
            continue
        count += 1
        if count > _MOST_FAULTS:
            return
        yield _path(at), message


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _texts(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every text in a decoded struct, with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from _texts(getattr(value, name), (*path, name))
    elif isinstance(value, list):
        for place, entry in enumerate(value):
            yield from _texts(entry, (*path, place))


def _value_at(content: Any, path: Iterable[str | int]) -> Any:
    try:
        for step in path:
            content = content[step]
    except (KeyError, IndexError, TypeError):
        return None
    return content


def _within(steps: Iterable[str | int], paths: frozenset[tuple[str, ...]]) -> bool:
    """Whether a path is one of the fields, or inside one."""
    place = tuple(steps)
    return any(place[: len(path)] == path for path in paths)


def _path(steps: tuple[str | int, ...]) -> str:
    """Formats a path: ("THCContent", "range", 0) as "THCContent.range[0]"."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")


def _kind(value: Any) -> str:
    names = {list: "an array", str: "a text", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _parse(message: str) -> tuple[str, str]:
    """("THCContent.range[0]", "expected decimal or null, got str")"""
    text, _, at = message.partition(" - at `$")
    text = text.replace("`", "").replace(" | ", " or ")
    return at.rstrip("`").removeprefix("."), text[:1].lower() + text[1:]


def _leave_out(plain: dict[str, Any], steps: list[str | int]) -> bool:
    """Nulls the value at the end of the path, or its nearest container that is not null already; false if there is none.

    An unnamed step ("...") is a key of a map: the whole map is nulled.
    """
    while "..." in steps:
        steps = steps[: steps.index("...")]
    for end in range(len(steps), 0, -1):
        holder: Any = plain
        try:
            for step in steps[: end - 1]:
                holder = holder[step]
            if holder[steps[end - 1]] is not None:
                holder[steps[end - 1]] = None
                return True
        except (KeyError, IndexError, TypeError):
            continue
    return False
