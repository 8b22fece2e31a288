"""Which screens there are, where, under which key, and who may see them."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from menuwatch.accounts.model import Permission


@dataclass(frozen=True, slots=True)
class Screen:
    """`key` opens it after `g`."""

    path: str
    name: str
    key: str
    needs: Permission = Permission.READ


NAVIGATION: tuple[tuple[str, tuple[Screen, ...]], ...] = (
    (
        "Work",
        (
            Screen("/", "Overview", "o"),
            Screen("/job-queue", "Job queue", "q"),
            Screen("/tasks", "Tasks", "t"),
            Screen("/failures", "Failures", "f"),
            Screen("/workers", "Workers", "w"),
            Screen("/schedules", "Schedules", "s"),
            Screen("/crawls", "Search crawls", "c"),
        ),
    ),
    (
        "Catalogue",
        (
            Screen("/stores", "Stores", "d"),
            Screen("/products", "Products", "p"),
            Screen("/payloads", "Payloads", "a"),
            Screen("/images", "Images", "i"),
        ),
    ),
    (
        "Reach",
        (
            Screen("/proxies", "Proxies", "x"),
            Screen("/hosts", "Hosts", "h"),
        ),
    ),
    (
        "People",
        (
            Screen("/alerts", "Alerts", "l"),
            Screen("/visitors", "Visitors", "v"),
        ),
    ),
    (
        "Installation",
        (
            Screen("/system", "System", "y"),
            Screen("/users", "Users", "u", Permission.ACCOUNTS),
            Screen("/audit", "Audit", "z", Permission.ACCOUNTS),
        ),
    ),
)

ALL = tuple(screen for _, screens in NAVIGATION for screen in screens)


def owner(path: str) -> str:
    """The path of the screen that an address belongs to."""
    best = ""
    for screen in ALL:
        if path == screen.path or (screen.path != "/" and path.startswith(screen.path + "/")):
            best = max(best, screen.path, key=len)
    return best or path


def listed_in(path: str) -> Screen | None:
    """The screen whose list something that is no more would be in; None for what belongs to none."""
    return next((screen for screen in ALL if screen.path == owner(path) and screen.path not in ("/", path)), None)


def close(path: str) -> list[Screen]:
    """Screens whose address or name is like that one, for whoever mistyped."""
    word = path.strip("/").split("/")[0].lower()
    names = {screen.path.strip("/"): screen for screen in ALL if screen.path != "/"}
    names |= {screen.name.lower(): screen for screen in ALL}
    found = difflib.get_close_matches(word, names, n=3, cutoff=0.5)
    return list(dict.fromkeys(names[name] for name in found))
