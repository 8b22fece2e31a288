"""One item that does not fit its types: what is wrong is left out and named, the rest is kept.

Only reached when an item was refused (by the strict decoder, for a text with NUL, or for a number out of bounds), so it may take
its time: the item is read as plain JSON, and each offending value is replaced by null until the decoder is content.

Where the name, a price or the stock cannot be read, nothing is made of the item: without them the product would look as if it had lost
its price or its stock, and what was known of it is nearer to the truth than that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import msgspec

from menuwatch.catalog.canon.bounds import shown, shown_id, unfit
from menuwatch.catalog.model import ProductWarning
from menuwatch.platforms import lenient

_MOST_FAULTS = 50
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_encoder = msgspec.json.Encoder(decimal_format="number")

T = TypeVar("T", bound=msgspec.Struct)
Steps = tuple[str | int, ...]


class Mender(Generic[T]):
    """Mends items of one type.

    `essential` are the fields (paths with dots) without which an item is no product; numbers in fields that are `judged` where they
    are used are not judged here. `identity` gives the id of a plain item.
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
        self._fields = target.__struct_fields__
        self._essential = frozenset(tuple(path.split(".")) for path in essential)
        self._judged = frozenset(tuple(path.split(".")) for path in judged)
        self._identity = identity

    def mend(self, raw: bytes) -> tuple[T | None, list[ProductWarning]]:
        """The item without its unusable values, and a warning for each; None and one fatal warning where nothing is left to use."""
        try:
            read = lenient.read(raw)
        except ValueError as error:
            return None, [ProductWarning(None, "", f"is no JSON: {error}", fatal=True)]
        if not isinstance(read, dict):
            return None, [ProductWarning(None, "", f"expected an object, got {_kind(read)}", fatal=True)]
        # What nobody reads may be as odd as it likes.
        plain = {name: lenient.writable(read[name]) for name in self._fields if name in read}
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
                beyond = [(at, value) for at, value in unfit(item) if not _within(at, self._judged)]
                if not beyond:
                    name = shown_id(self._identity(plain))
                    return item, [ProductWarning(name, path, f"{message}; left out") for path, message in faults]
                for at, value in beyond:
                    _leave_out(plain, list(at))
                    faults.append((_path(at), f"{shown(value)} is out of bounds"))
        path, message = faults[0]
        return None, [self._fatal(plain, path, f"{message}, and more than {_MOST_FAULTS} other faults")]

    def _fatal(self, plain: dict[str, Any], path: str, message: str) -> ProductWarning:
        return ProductWarning(shown_id(self._identity(plain)), path, message, fatal=True)


def _within(steps: Iterable[str | int], paths: frozenset[tuple[str, ...]]) -> bool:
    """Whether a path leads to one of the fields, or into it."""
    found = tuple(steps)
    return any(found[: len(path)] == path for path in paths)


def _path(steps: tuple[str | int, ...]) -> str:
    """("THCContent", "range", 0) as it is written: "THCContent.range[0]"."""
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
    """Nulls the value at the end of the path, or the first thing around it that is not null already; false where there is none.

    An unnamed step ("...") is a key of a map: the whole map goes.
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
