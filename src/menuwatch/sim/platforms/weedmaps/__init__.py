"""Weedmaps in the simulated market: its endpoint, and what its answers hold."""

from menuwatch.sim.platforms.weedmaps.endpoint import PLATFORM

__all__ = ["PLATFORM"]
