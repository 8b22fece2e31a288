"""Attacks a running installation of its own and reports what did not hold. `make attack` runs it; SEED=… repeats a run's cases.

    api          generated cases of openapi.json, and every operation as every kind of principal
    forms        every form and page, by role and origin, with fuzzed values
    files        hostile archives, mutated pictures, damaged archive files, with memory and time measured
    connections  half-sent requests, slow readers, request smuggling, few file descriptors
    faults       kill -9 of database, server and commands, a full disk, a wrong clock
    secrets      marked secrets, looked for in every output

Everything happens on this machine, in a temporary folder, and stops by itself. Exit code 1 where anything was found.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.attack.installation import Installation
from tests.attack.report import Attack
from tests.chaos.worker_processes import Leash
from tests.conftest import in_memory

SHARES = {"api": 0.22, "forms": 0.22, "files": 0.22, "connections": 0.11, "faults": 0.18, "secrets": 0.05}
"""Of the time. The parts whose cases are a fixed list (the last three) need about what they are given."""
MINUTES = 15.0


@contextlib.contextmanager
def filled(seed: int, *, stores: int = 6, products: int = 40, cycles: int = 3) -> Iterator[tuple[Installation, Path]]:
    """A filled installation to copy, and the folder that everything lies in; both are gone afterwards, and all processes too."""
    # The database runs as another user where we are root: the folder is one that any user may enter.
    folder = Path(tempfile.mkdtemp(prefix="menuwatch-attack-", dir=in_memory()))
    folder.chmod(0o755)
    with Leash(folder) as leash:
        template = Installation(folder / "template", leash, {})
        template.fill(stores=stores, products=products, cycles=cycles, seed=seed)
        yield template, folder


def attack(
    part: str, template: Installation, folder: Path, *, seed: int, seconds: float, most: int = 1000, only: str = ""
) -> Attack:
    """Runs one part."""
    began = time.monotonic()
    attacking = Attack(
        part=part, seed=seed, folder=folder, template=template, deadline=began + seconds, most=most, only=only
    )
    run: Callable[[Attack], None] = importlib.import_module(f"tests.attack.{part}").run
    try:
        run(attacking)
    except Exception as error:  # the other parts still run
        attacking.expect(False, "the part itself", f"it broke off: {type(error).__name__}: {error}")
    shutil.rmtree(folder / part, ignore_errors=True)
    attacking.seconds = time.monotonic() - began
    return attacking


def table(done: Sequence[Attack]) -> list[str]:
    """The figures of a run."""
    lines = [f"{'part':12} {'cases':>7} {'findings':>9} {'skipped':>8} {'seconds':>8}  figures"]
    for one in done:
        figures = ", ".join(f"{name} {value}" for name, value in one.figures.items())
        lines.append(
            f"{one.part:12} {one.cases:7,} {len(one.findings):9,} {len(one.skipped):8,} {one.seconds:8.1f}  {figures}"
        )
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=None, help="repeats the cases of that run")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="about how long all parts together take (15)")
    parser.add_argument("--part", choices=SHARES, action="append", help="only this part; may be given several times")
    parser.add_argument("--case", default="", help="only cases whose name holds this text")
    given = parser.parse_args()
    seed = int(time.time()) if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    done = []
    with filled(seed) as (template, folder):
        for part in given.part or SHARES:
            seconds = given.minutes * 60 * SHARES[part]
            done.append(attack(part, template, folder, seed=seed, seconds=seconds, only=given.case))
            print("\n".join(done[-1].lines() + table(done[-1:])[1:]), flush=True)
    print("\n".join(["", f"seed {seed}", *table(done)]), flush=True)
    if missed := [f"{one.part}: {what}" for one in done for what in one.skipped]:
        print("\n".join(["", "not tried:", *missed]), flush=True)
    return 1 if any(one.findings for one in done) else 0


if __name__ == "__main__":
    sys.exit(main())
