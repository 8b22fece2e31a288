"""The limits that this process runs under, as Linux control groups have them, version 2 and version 1.

A limit may be set on the process's own group or on any above it, and each is read together with the use that it bounds. In a container
the tree usually begins at the container's own group, and the path that the process is told (of the host's tree) leads nowhere: then
the top of the tree is the group.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes in use that could not simply be given back, and the most there may be."""

    used: int
    limit: int

    @property
    def share(self) -> float:
        """How much of the limit is used, 1 being all of it."""
        return self.used / self.limit


@dataclass(frozen=True, slots=True)
class Processor:
    """Seconds of processor time used so far, and how many processors' worth may be used at once."""

    used: float
    limit: float


class ControlGroups:
    """Reads anew at each call: limits change while processes run."""

    def __init__(self, root: Path = Path("/")) -> None:
        """`root` is where `proc` and `sys` are found."""
        self._tree = root / "sys/fs/cgroup"
        self._paths = dict(_paths(root / "proc/self/cgroup"))

    def memory(self) -> Memory | None:
        """The limit that is nearest to being reached; None where there is none."""
        found = []
        for group in self._groups(""):
            with contextlib.suppress(OSError, ValueError):
                limit = int((group / "memory.max").read_text())  # "max", which is no number, is none
                reclaimable = _field(group / "memory.stat", "inactive_file")
                found.append(Memory(max(0, _number(group / "memory.current") - reclaimable), limit))
        for group in self._groups("memory"):
            with contextlib.suppress(OSError, ValueError):
                limit = _number(group / "memory.limit_in_bytes")
                reclaimable = _field(group / "memory.stat", "total_inactive_file")
                found.append(Memory(max(0, _number(group / "memory.usage_in_bytes") - reclaimable), limit))
        return max((one for one in found if one.limit > 0), key=lambda one: one.share, default=None)

    def processor(self) -> Processor | None:
        """The tightest limit; None where there is none."""
        found = []
        for group in self._groups(""):
            with contextlib.suppress(OSError, ValueError):
                quota, period = (group / "cpu.max").read_text().split()
                found.append(Processor(_field(group / "cpu.stat", "usage_usec") / 1e6, int(quota) / int(period)))
        for group, accounts in zip(self._groups("cpu"), self._groups("cpuacct"), strict=False):
            with contextlib.suppress(OSError, ValueError):
                limit = _number(group / "cpu.cfs_quota_us") / _number(group / "cpu.cfs_period_us")
                found.append(Processor(_number(accounts / "cpuacct.usage") / 1e9, limit))
        return min((one for one in found if one.limit > 0), key=lambda one: one.limit, default=None)

    def _groups(self, controller: str) -> Iterator[Path]:
        """Folders of the process's group of that controller (version 2: of all) and of those above it."""
        own = self._paths.get(controller, PurePosixPath("/"))
        for path in (own, *own.parents):
            folder = self._tree / controller / path.relative_to("/")
            if folder.is_dir():
                yield folder


def _paths(listing: Path) -> Iterator[tuple[str, PurePosixPath]]:
    """Of each controller the group that the process is in; version 2 has one group for all of them, under the name ''."""
    with contextlib.suppress(OSError):
        for line in listing.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            for controller in controllers.split(","):
                yield controller, PurePosixPath("/") / path


def _number(file: Path) -> int:
    return int(file.read_text())


def _field(file: Path, name: str) -> int:
    """A value of a file that has a name and a number in each line; 0 where it does not name it."""
    for line in file.read_text().splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    return 0
