"""Names that people can say, for pods and the workers in them. Pure."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

NAMES = (
    "Aethelgard",
    "Xylos",
    "Kryll",
    "Vantor",
    "Ombrel",
    "Sethra",
    "Quillon",
    "Brannoc",
    "Ysmere",
    "Dravik",
    "Talune",
    "Morrigal",
    "Fenwyr",
    "Caldris",
    "Zephyne",
)
"""Of pods."""
WORKER_NAMES = (
    "Ada",
    "Bruno",
    "Cleo",
    "Dario",
    "Edda",
    "Finn",
    "Greta",
    "Hugo",
    "Ines",
    "Jonas",
    "Kaia",
    "Leon",
    "Mira",
    "Nils",
    "Olga",
)
"""Of workers, each in its pod."""

_ORDINAL = re.compile(r"-(0|[1-9]\d{0,5})$")


def friendly_name(ordinal: int, names: Sequence[str] = NAMES) -> str:
    """The name of the n-th (from 0); past the last one they begin again with a number: Aethelgard 2, Xylos 2, …"""
    if ordinal < 0:
        raise ValueError(f"ordinal must not be negative, got {ordinal}")
    turn, place = divmod(ordinal, len(names))
    return names[place] if turn == 0 else f"{names[place]} {turn + 1}"


def worker_name(ordinal: int) -> str:
    """The name of the n-th worker (from 0) of a pod."""
    return friendly_name(ordinal, WORKER_NAMES)


def pod_name(host: str, *, ordinal: int | None = None, name: str | None = None) -> str:
    """What a pod is called: by its ordinal, or by the one at the end of its name or of the host's, as StatefulSets number their
    pods (`scraper-worker-3`); a name without one stands as it is, and a host without one is always called the same."""
    if ordinal is not None:
        return friendly_name(ordinal)
    if match := _ORDINAL.search(name or host):
        return friendly_name(int(match[1]))
    return name or friendly_name(zlib.crc32(host.encode()) % len(NAMES))
