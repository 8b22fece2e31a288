"""Where one goes after a login: back to the page that asked for it, and nowhere else."""

from __future__ import annotations

import re
from urllib.parse import unquote

_LONGEST = 2000
_PLAIN = re.compile(r"[!-\[\]-~]*")
"""Printable ASCII without blanks and without the backslash, which browsers take for a slash. An address that is rightly encoded has
nothing else in it; a line break would begin another header."""


def safe_next(text: str | None, prefix: str = "") -> str:
    """The path to go to, `prefix` included: `text` where it is a path of ours, else the dashboard's first page."""
    home = f"{prefix}/admin/"
    if not text or len(text) > _LONGEST or not _PLAIN.fullmatch(text):
        return home
    path = re.split(r"[?#]", text, maxsplit=1)[0]
    # What the browser makes of it must lie where it seems to: no other host (//host), no way out of the prefix (/menus/../else).
    if not path.startswith("/") or "//" in path or _climbs(path):
        return home
    if prefix and not path.startswith(f"{prefix}/"):
        return home
    return text


def _climbs(path: str) -> bool:
    return any(unquote(part) in (".", "..") for part in path.split("/"))
