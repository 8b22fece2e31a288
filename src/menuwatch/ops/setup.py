"""The steps from a new installation to one that crawls and is looked after."""

from __future__ import annotations

from msgspec import Struct

from menuwatch.config.settings import Settings
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_all

_q = sql.load(__package__, "setup.sql")


class Step(Struct, frozen=True, kw_only=True):
    """A step. `path` is the dashboard's page for it and `act` the label of its button; without one, `detail` names the command."""

    name: str
    done: bool
    detail: str
    path: str | None = None
    act: str = ""


class Setup(Struct, frozen=True, kw_only=True):
    """The steps, in their order."""

    steps: list[Step]

    @property
    def done(self) -> int:
        """Number of finished steps."""
        return sum(step.done for step in self.steps)


async def get_setup(conn: Connection, settings: Settings) -> Setup:
    """How far the installation is."""
    (now,) = await fetch_all(conn, _q.steps, {})
    return Setup(
        steps=[
            Step(
                name="Add a proxy",
                done=now["proxy"],
                detail="All requests go through proxies; without an active one workers send none.",
                path="/proxies/import",
                act="Add proxies",
            ),
            Step(
                name="Add a store",
                done=now["store"],
                detail="By the URL of its menu, or by discovery in states that you choose.",
                path="/stores/new",
                act="Add stores",
            ),
            Step(
                name="First crawl",
                done=now["crawl"],
                detail="Starts within minutes after a store is added, if a worker and a proxy are active.",
                path="/job-queue",
                act="Job queue",
            ),
            Step(
                name="Create an alert",
                done=now["alert"],
                detail="Be notified of prices, stock, and problems of the installation.",
                path="/alerts/new",
                act="New rule",
            ),
            Step(name="Back up", done=now["backup"], detail="Run `menuwatch backup FOLDER`, for example every night."),
            Step(
                name="Set SECRET_KEY",
                done=bool(settings.secret_key),
                detail="Encrypts stored passwords; `menuwatch proxies key` generates one.",
            ),
        ]
    )
