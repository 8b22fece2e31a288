"""Names that people can say, for pods and workers. Pure."""

from __future__ import annotations

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


def friendly_name(ordinal: int) -> str:
    """The name of the n-th (from 0); past the last one they begin again with a number: Aethelgard 2, Xylos 2, …"""
    if ordinal < 0:
        raise ValueError(f"ordinal must not be negative, got {ordinal}")
    turn, place = divmod(ordinal, len(NAMES))
    return NAMES[place] if turn == 0 else f"{NAMES[place]} {turn + 1}"
