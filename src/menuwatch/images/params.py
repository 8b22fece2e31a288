"""The parameters of `GET /img/…`, checked and normalized. Pure.

| parameter | values | where it is not given |
|---|---|---|
| `w`, `h` | 1 to 4000 | as the image has it |
| `q` | 1 to 100 | 80; 50 as AVIF |
| `fit` | cover, contain, fill, inside, outside | cover; it means something with both `w` and `h` only |
| `blur` | 0.3 to 1000 (sigma) | none |
| `gray` | 1 (0: as if it were not given) | in colour |
| `format` | webp, jpeg, png, avif | by the Accept header |
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, get_args

from menuwatch.core.errors import MenuwatchError
from menuwatch.images.limits import MAX_BLUR, MAX_REQUESTED_SIDE, MIN_BLUR

Format = Literal["webp", "jpeg", "png", "avif"]
Fit = Literal["cover", "contain", "fill", "inside", "outside"]

QUALITY: dict[Format, int] = {"webp": 80, "jpeg": 80, "png": 80, "avif": 50}
"""Default by format, about equally close to the original: at 80 an AVIF would be two to three times as large as a WebP. Ignored for
PNG."""
NAMES = ("w", "h", "q", "fit", "blur", "gray", "format")

_WHOLE = re.compile(r"[0-9]{1,9}")
_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


class BadParameters(MenuwatchError):
    """Parameters that mean nothing: (name, what is wrong and what is allowed) of each."""

    def __init__(self, errors: Iterable[tuple[str, str]]) -> None:
        self.errors = tuple(errors)
        super().__init__("; ".join(f"{name}: {problem}" for name, problem in self.errors))


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """Sizes in pixels, `blur` a sigma in pixels of the result; None: not given."""

    w: int | None = None
    h: int | None = None
    q: int | None = None
    fit: Fit = "cover"
    blur: float | None = None
    gray: bool = False
    format: Format | None = None

    @property
    def changes_nothing(self) -> bool:
        """Whether the stored image can be sent unchanged, if its format is accepted."""
        return replace(self, format=None) == Params()

    def canonical(self) -> str:
        """Canonical query text, equal for equivalent parameters; empty without any."""
        given: list[tuple[str, object]] = [("w", self.w), ("h", self.h), ("q", self.q)]
        if self.fit != "cover":
            given.append(("fit", self.fit))
        given += [("blur", None if self.blur is None else f"{self.blur:g}"), ("gray", 1 if self.gray else None)]
        given.append(("format", self.format))
        return "&".join(f"{name}={value}" for name, value in sorted(given) if value is not None)

    def made_as(self, target: Format) -> Params:
        """What decides over the bytes of the result in that format: what makes no difference to them is left out."""
        both = self.w is not None and self.h is not None
        quality = None if target == "png" else self.q if self.q is not None else QUALITY[target]
        return replace(self, format=target, q=quality, fit=self.fit if both else "cover")


def parse(pairs: Iterable[tuple[str, str]]) -> Params:
    """Parses the parameters of a URL. Raises BadParameters."""
    given: dict[str, str] = {}
    errors: list[tuple[str, str]] = []
    for name, value in pairs:
        if name not in NAMES:
            errors.append((name[:40], f"unknown; the parameters are {', '.join(NAMES)}"))
        elif name in given:
            errors.append((name, "is given more than once"))
        else:
            given[name] = value
    values: dict[str, object] = {}
    for name, value in given.items():
        try:
            values[name] = _read(name, value)
        except ValueError as error:
            errors.append((name, f"must be {error}, not {value[:40]!r}"))
    if errors:
        raise BadParameters(errors)
    return Params(**values)  # type: ignore[arg-type]


def _read(name: str, text: str) -> object:
    """Raises ValueError with the allowed values."""
    match name:
        case "w" | "h":
            return _whole(text, MAX_REQUESTED_SIDE)
        case "q":
            return _whole(text, 100)
        case "fit":
            return _one_of(text, get_args(Fit))
        case "format":
            return _one_of({"jpg": "jpeg"}.get(text, text), get_args(Format))
        case "blur":
            value = float(text) if _NUMBER.fullmatch(text) else 0.0
            if not MIN_BLUR <= value <= MAX_BLUR:
                raise ValueError(f"a number from {MIN_BLUR} to {MAX_BLUR:g}")
            return value
        case _:
            return _one_of(text, ("1", "0")) == "1"


def _whole(text: str, most: int) -> int:
    value = int(text) if _WHOLE.fullmatch(text) else 0
    if not 1 <= value <= most:
        raise ValueError(f"a whole number from 1 to {most}")
    return value


def _one_of(text: str, allowed: tuple[str, ...]) -> str:
    if text not in allowed:
        raise ValueError(f"one of {', '.join(allowed)}")
    return text
