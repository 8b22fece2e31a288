"""What a part of the attack is given (its time, its chance, its filter), and what it reports."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.attack.installation import Installation


@dataclass(frozen=True, slots=True)
class Finding:
    """One promise that did not hold. `sent` is what was sent or done, `wrong` what came of it."""

    case: str
    wrong: str
    sent: str


@dataclass(slots=True, kw_only=True)
class Attack:
    """One part's run. A case has a name; everything random about it comes from the seed and that name, so it can be repeated alone.

    `most` is the number of rounds of generated cases, `only` a text that the names of its cases must hold."""

    part: str
    seed: int
    folder: Path
    template: Installation
    deadline: float
    most: int = 1000
    only: str = ""
    cases: int = 0
    findings: dict[tuple[str, str], Finding] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self.deadline

    def chance(self, case: str) -> Random:
        """The generator of that case alone."""
        return Random(f"{self.seed} {case}")

    def begins(self, case: str) -> bool:
        """Whether to try this case; counts it."""
        wanted = self.only in case
        self.cases += wanted
        return wanted

    def expect(self, holds: object, case: str, wrong: str, sent: object = "") -> bool:
        """Reports a finding unless `holds`; the same one of the same case once."""
        if not holds:
            text = sent if isinstance(sent, str) else repr(sent)
            self.findings.setdefault((case, wrong[:30]), Finding(case, wrong[:600], text[:600]))
        return bool(holds)

    def skip(self, case: str, why: str) -> None:
        """Notes a case that this machine cannot try."""
        self.skipped.append(f"{case}: {why}")

    @contextmanager
    def installation(self, name: str = "home", *, look: bool = True, **environ: str) -> Iterator[Installation]:
        """A copy of the filled installation, its server running; with `look` its log may hold no error at the end. Where the filled
        one runs itself (the short form), it is used as it is."""
        if self.template.process is not None:
            yield self.template
            return
        target = self.template.copied(self.folder / self.part / name, **environ)
        try:
            target.start()
            yield target
        finally:
            target.stop()
        for action, count in target.complaints().items() if look else ():
            self.expect(False, f"log {name}: {action}", f"{count} times in the server's log", target.excerpt(action))

    def lines(self) -> list[str]:
        """The findings for people, each with the command that repeats it."""
        run = f".venv/bin/python -m tests.attack.run --seed {self.seed} --part {self.part}"
        found = list(self.findings.values())
        said = [f"{self.part}: skipped {one}" for one in self.skipped]
        for one in found[:40]:
            # The log is what all cases together left behind.
            repeat = run if one.case.startswith("log ") else f"{run} --case {shlex.quote(one.case)}"
            said += [f"{self.part}: {one.case}", f"    found:  {one.wrong}"]
            said += [f"    sent:   {one.sent}"] if one.sent else []
            said += [f"    repeat: {repeat}"]
        return said + ([f"{self.part}: and {len(found) - 40} more findings"] if len(found) > 40 else [])
