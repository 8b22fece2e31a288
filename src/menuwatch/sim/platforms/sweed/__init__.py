"""Sweed in the simulated market: its endpoint, and what its answers hold."""

from menuwatch.sim.platforms.sweed.endpoint import PLATFORM

__all__ = ["PLATFORM"]
