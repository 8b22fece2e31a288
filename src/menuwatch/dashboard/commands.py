"""Actions that the search offers: a command with its form, on an object that was found or on the whole installation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import quote

from msgspec import Struct

from menuwatch.accounts.model import Permission, Principal
from menuwatch.dashboard.navigation import SCREENS
from menuwatch.ops.quick_search import ResultKind, SearchResult

_PATHS = {
    ResultKind.STORE: "/stores/", ResultKind.TASK: "/tasks/", ResultKind.PAYLOAD: "/payloads/", ResultKind.HOST: "/hosts/",
    ResultKind.WORKER: "/workers/", ResultKind.PROXY: "/proxies/", ResultKind.SCHEDULE: "/schedules/", ResultKind.USER: "/users/",
}  # fmt: skip
VERBS = frozenset({"pause", "resume", "crawl", "disable", "enable", "run", "clone", "decommission"})
"""First words of a search that name an action; the words after them name its object."""


class Command(Struct, frozen=True):
    """A link, or with `fields` a form that is posted; `question` must be confirmed first."""

    name: str
    path: str
    needs: Permission = Permission.READ
    fields: tuple[tuple[str, str], ...] | None = None
    question: str | None = None


_GENERAL = (
    Command("Scale workers…", "/workers", Permission.WORKERS),
    Command("Enqueue tasks…", "/job-queue/enqueue", Permission.TASKS),
    Command("Retry failed tasks…", "/failures", Permission.TASKS),
    Command("Add stores…", "/stores/new", Permission.STORES),
    Command("Add a proxy…", "/proxies/add", Permission.PROXIES),
    Command("Import proxies…", "/proxies/import", Permission.PROXIES),
    Command("New alert rule…", "/alerts/new", Permission.ALERTS),
    Command("Add a user…", "/users/add", Permission.ACCOUNTS),
    Command("Check the installation (doctor)", "/system/doctor"),
    Command("Your account and API tokens", "/account"),
)


def path_of(result: SearchResult) -> str:
    """The page of an object."""
    return _PATHS[ResultKind(result.kind)] + quote(result.id, safe="")


def general(words: Sequence[str], who: Principal) -> list[Command]:
    """Screens and commands whose name contains every word."""
    screens = [Command(screen.name, screen.path, screen.needs) for screen in SCREENS]
    named = (one for one in (*screens, *_GENERAL) if who.may(one.needs))
    return [one for one in named if all(word in one.name.lower() for word in words)]


def on_objects(results: Sequence[SearchResult], verb: str | None, who: Principal, most: int = 6) -> list[Command]:
    """Commands on what was found; with a verb only those that begin with it."""
    found = [one for result in results for one in _on(result) if who.may(one.needs)]
    return [one for one in found if verb is None or one.name.lower().startswith(verb)][:most]


def _on(result: SearchResult) -> Iterator[Command]:
    at, name = path_of(result), result.name
    match result.kind:
        case ResultKind.STORE:
            yield Command(f"Crawl {name}", f"{at}/crawl", Permission.TASKS, ())
            yield Command(f"All tasks of {name}", f"/tasks?q=store:{result.id}")
        case ResultKind.HOST if result.state == "paused":
            yield Command(f"Resume host {name}", f"{at}/resume", Permission.HOSTS, ())
        case ResultKind.HOST:
            yield Command(f"Pause host {name}…", f"{at}/pause", Permission.HOSTS)
        case ResultKind.WORKER if result.state == "paused":
            yield Command(f"Resume worker {name}", f"{at}/resume", Permission.WORKERS, ())
        case ResultKind.WORKER if result.state not in ("stopped", "silent"):
            yield Command(f"Pause worker {name}", f"{at}/pause", Permission.WORKERS, ())
            yield Command(
                f"Decommission worker {name}", f"{at}/decommission", Permission.WORKERS, (),
                f"Decommission {name}? It finishes its tasks, stops and is not restarted automatically.",
            )  # fmt: skip
        case ResultKind.PROXY if result.state == "disabled":
            yield Command(f"Enable proxy {name}", "/proxies/enable", Permission.PROXIES, (("id", result.id),))
        case ResultKind.PROXY if result.state == "enabled":
            yield Command(f"Disable proxy {name}", "/proxies/disable", Permission.PROXIES, (("id", result.id),))
        case ResultKind.SCHEDULE:
            question = f"Run {name} now? Stores that are not due are skipped; the scheduled times do not change."
            yield Command(f"Run schedule {name} now", f"{at}/run", Permission.SCHEDULES, (), question)
        case ResultKind.TASK:
            yield Command(f"Clone task {result.id}…", f"{at}/clone", Permission.TASKS)
