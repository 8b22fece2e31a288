"""If-Match: a change that rests on what was read is refused where somebody else has changed it since."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Header

from menuwatch.api.answers import matches, tag_of
from menuwatch.api.problems import Changed

IfMatch = Annotated[
    str | None,
    Header(alias="If-Match", description="ETag of it as you read it: refused where it was changed since."),
]


def check(if_match: str | None, current: Any, what: str) -> None:
    """Raises Changed, with what it is now, where that is another version. The caller has locked it."""
    if if_match is not None and not matches(if_match, tag_of(current)):
        raise Changed(f"{what} was changed since you read it: look at what it is now", more={"current": current})
