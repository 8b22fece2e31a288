"""Turns commands in messages into links to the screen for the same action.

Operations name the command that helps, between backticks; the command line prints it. Here `menuwatch stores list` becomes a link to
the stores, and `menuwatch hosts resume x` one to the host with its button. Commands without a screen (`menuwatch worker`) stay as
text.
"""

from __future__ import annotations

import re
import shlex
from contextvars import ContextVar
from datetime import UTC, datetime
from urllib.parse import quote

from markupsafe import Markup

from menuwatch.web.pages import stamp_tag

_SCREENS = {
    "alerts": ("/alerts", "Alerts"),
    "hosts": ("/hosts", "Hosts"),
    "match": ("/matching/corrections", "Corrections"),
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
    ("tasks", "retry"): "Retry", ("tasks", "cancel"): "Cancel", ("proxies", "add"): "Add a proxy", ("proxies", "enable"): "Enable",
    ("proxies", "remove"): "Remove", ("proxies", "test"): "Test", ("workers", "resume"): "Resume", ("workers", "pause"): "Pause",
    ("alerts", "edit"): "Edit", ("match", "withdraw"): "Withdraw",
}  # fmt: skip
"""What a screen calls what the command does."""


root: ContextVar[str] = ContextVar("root", default="")
"""Where the dashboard lies, for the page that is made: macros do not see what a page was given."""


def code_spans(text: str) -> Markup:
    """HTML of a text with commands between backticks: a link if a screen has the command, else code. Times become those of the zone
    that the user chose."""
    parts = re.split("`([^`]+)`", str(text))
    return Markup("").join(_said(part) if index % 2 else _timed(part) for index, part in enumerate(parts))


def _timed(text: str) -> Markup:
    parts = re.split(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC)", text)
    return Markup("").join(
        stamp_tag(datetime.strptime(part, "%Y-%m-%d %H:%M:%S UTC").replace(tzinfo=UTC)) if index % 2 else part
        for index, part in enumerate(parts)
    )


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
