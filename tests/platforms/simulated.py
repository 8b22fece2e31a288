"""Menus of the simulated market, read by the real adapters in this process, without sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

from menuwatch.config.settings import Settings
from menuwatch.core.http import Session
from menuwatch.platforms.model import Menu
from menuwatch.platforms.registry import platforms
from menuwatch.sim.local_session import LocalSession


class Simulated(LocalSession):
    """One store of one platform, and the adapter that requests it."""

    def __init__(
        self, name: str, *, products: int = 60, seed: int = 5, faults: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(name, products=products, seed=seed, faults=faults)
        self.adapter = platforms(Settings(**self.settings, fetch_retry_base_seconds=0.0))[name]

    def menu(self) -> Menu:
        """The whole menu as the adapter fetches it."""
        return asyncio.run(self.adapter.fetch_menu(cast("Session", self), self.store.id))
