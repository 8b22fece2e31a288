"""The worker processes: `menuwatch worker` as anybody starts it, each logging to a file of its own."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

from menuwatch.queue.model import Role
from tests.chaos.worker_processes import Crew, Leash, Member


class Workers(Crew):
    """Who is gone, killed or not, is replaced under another name."""

    def __init__(self, leash: Leash, folder: Path, settings: dict[str, str]) -> None:
        super().__init__(leash, folder, {}, Random(0))
        self._settings = settings

    async def hire(self, roles: frozenset[Role] | None, slots: int) -> Member:
        self._serial += 1
        name = f"s{self._serial}"
        with (self._folder / f"{name}.log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "menuwatch.cli.main",
                "worker",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **self._settings, "WORKER_ID": name, "LOG_FORMAT": "json"},
                start_new_session=True,
            )
        self._leash.hold(process.pid)
        member = Member(name, roles, slots, process)
        self.members.append(member)
        return member

    def said(self) -> Counter[str]:
        """How often each warning and error was logged, by its action; a line that is no log line counts as such."""
        found: Counter[str] = Counter()
        for path in self._folder.glob("s[0-9]*.log"):
            for line in path.read_text(errors="replace").splitlines():
                try:
                    entry = json.loads(line)
                    if entry["level"] in ("warning", "error", "critical"):
                        found[entry["action"]] += 1
                except (ValueError, KeyError, TypeError):
                    found["not a log line"] += 1
        return found

    def last_words(self, member: Member) -> str:
        """The end of its log."""
        return (self._folder / f"{member.name}.log").read_text(errors="replace")[-1500:]
