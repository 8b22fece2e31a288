"""What messages say for the command line, said for people who look at a screen: the command becomes the screen where it is done.

Operations name the command that helps, between backticks; the command line shows that. Here `menuwatch stores list` is a link to
the stores, and `menuwatch hosts resume x` one to the host where the button is. Commands that no screen has (`menuwatch worker`) stay.
"""

from __future__ import annotations

import re
import shlex
from contextvars import ContextVar
from urllib.parse import quote

from markupsafe import Markup

_SCREENS = {
    "alerts": ("/alerts", "Alerts"),
    "hosts": ("/hosts", "Hosts"),
    "payloads": ("/payloads", "Payloads"),
    "proxies": ("/proxies", "Proxies"),
    "schedules": ("/schedules", "Schedules"),
    "stores": ("/stores", "Stores"),
    "tasks": ("/tasks", "Tasks"),
    "users": ("/users", "Users"),
    "workers": ("/workers", "Workers"),
}
_ONE_PAGE_EACH = frozenset({"hosts", "payloads", "proxies", "tasks"})
"""Groups whose commands name what has a page of its own by what the command calls it."""
_DONE_THERE = {
    ("hosts", "resume"): "Resume", ("hosts", "pause"): "Pause", ("hosts", "reset"): "Reset", ("hosts", "set"): "the limits",
    ("tasks", "retry"): "Retry", ("tasks", "cancel"): "Cancel", ("proxies", "add"): "Add", ("proxies", "enable"): "Enable",
    ("proxies", "remove"): "Remove", ("proxies", "test"): "Test", ("workers", "resume"): "Resume", ("workers", "pause"): "Pause",
    ("alerts", "edit"): "Edit",
}  # fmt: skip
"""What a screen calls what the command does."""


root: ContextVar[str] = ContextVar("root", default="")
"""Where the dashboard lies, for the page that is made: macros do not see what a page was given."""


def ticked(text: str) -> Markup:
    """Text in which what stands between backticks is a command: a link where a screen has it, else code."""
    parts = re.split("`([^`]+)`", str(text))
    return Markup("").join(_said(part) if index % 2 else part for index, part in enumerate(parts))


def _said(command: str) -> Markup:
    as_it_is = Markup("<code>{}</code>").format(command)
    try:
        words = shlex.split(command)
    except ValueError:
        return as_it_is
    if len(words) < 2 or words[0] != "menuwatch" or words[1] not in _SCREENS:
        return as_it_is
    group, verb = words[1], words[2] if len(words) > 2 else "list"
    path, name = _SCREENS[group]
    if verb == "list":
        return Markup('<a href="{}">{}</a>').format(root.get() + path, name)
    if (group, verb) not in _DONE_THERE:
        return as_it_is
    named = [word for word in words[3:4] if not word.startswith("-") and "…" not in word and "://" not in word]
    if named and group in _ONE_PAGE_EACH:
        path, name = f"{path}/{quote(named[0], safe='')}", f"{group[:-1] if group != 'proxies' else 'proxy'} {named[0]}"
    what = _DONE_THERE[group, verb]
    what = what if what.islower() else f"“{what}”"
    return Markup('{} at <a href="{}">{}</a>').format(what, root.get() + path, name)
