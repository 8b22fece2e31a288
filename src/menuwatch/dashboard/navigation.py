"""All screens: path, keyboard shortcut, and required permission."""

from __future__ import annotations

import difflib
import itertools

from msgspec import Struct

from menuwatch.accounts.model import Permission


class Screen(Struct, frozen=True):
    """`key` opens it after `g`."""

    group: str
    path: str
    name: str
    key: str
    needs: Permission = Permission.READ


SCREENS = (
    Screen("Work", "/", "Overview", "o"),
    Screen("Work", "/job-queue", "Job queue", "q"),
    Screen("Work", "/tasks", "Tasks", "t"),
    Screen("Work", "/failures", "Failures", "f"),
    Screen("Work", "/workers", "Workers", "w"),
    Screen("Work", "/schedules", "Schedules", "s"),
    Screen("Work", "/crawls", "Search crawls", "c"),
    Screen("Catalog", "/stores", "Stores", "d"),
    Screen("Catalog", "/locations", "Locations", "r"),
    Screen("Catalog", "/products", "Products", "p"),
    Screen("Catalog", "/matching", "Matching", "m"),
    Screen("Catalog", "/changes", "Changes", "e"),
    Screen("Catalog", "/payloads", "Payloads", "a"),
    Screen("Catalog", "/quarantine", "Quarantine", "b"),
    Screen("Catalog", "/quality", "Data quality", "j"),
    Screen("Catalog", "/images", "Images", "i"),
    Screen("Catalog", "/analytics", "Analytics", "n"),
    Screen("Catalog", "/exports", "Exports", "k", Permission.EXPORT),
    Screen("Network", "/proxies", "Proxies", "x"),
    Screen("Network", "/hosts", "Hosts", "h"),
    Screen("Alerts", "/alerts", "Alerts", "l"),
    Screen("Admin", "/system", "System", "y"),
    Screen("Admin", "/visitors", "Visitors", "v"),
    Screen("Admin", "/users", "Users", "u", Permission.ACCOUNTS),
    Screen("Admin", "/audit", "Audit", "z", Permission.ACCOUNTS),
)
NAVIGATION = [(group, list(screens)) for group, screens in itertools.groupby(SCREENS, lambda screen: screen.group)]


def owner(path: str) -> str:
    """The path of the screen that an address belongs to."""
    best = ""
    for screen in SCREENS:
        if path == screen.path or (screen.path != "/" and path.startswith(screen.path + "/")):
            best = max(best, screen.path, key=len)
    return best or path


def listed_in(path: str) -> Screen | None:
    """The screen whose list would contain a removed object; None if there is none."""
    return next((screen for screen in SCREENS if screen.path == owner(path) and screen.path not in ("/", path)), None)


def close(path: str) -> list[Screen]:
    """Screens whose path or name is similar, to suggest after a typing error."""
    word = path.strip("/").split("/")[0].lower()
    names = {screen.path.strip("/"): screen for screen in SCREENS if screen.path != "/"}
    names |= {screen.name.lower(): screen for screen in SCREENS}
    found = difflib.get_close_matches(word, names, n=3, cutoff=0.5)
    return list(dict.fromkeys(names[name] for name in found))
