"""How well the service works that fetches pages for us."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """How well it works, as shares of its orders. `lose`: never calls; `double`: calls twice; `fail`: calls and says that it could
    not; `refuse`: does not take the order, and wants `retry_after` seconds; `slow`: seconds that a call may be late; `inline`: the
    page is in the call; `garble`: the address of the page leads to nothing that can be read."""

    lose: float = 0.0
    double: float = 0.0
    fail: float = 0.0
    refuse: float = 0.0
    retry_after: float = 30.0
    slow: float = 0.0
    inline: float = 0.3
    garble: float = 0.0
