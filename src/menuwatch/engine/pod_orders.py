"""Carries out orders for more or fewer pods. Any number of servers may run it: one at a time does something."""

from __future__ import annotations

from typing import ClassVar

from menuwatch.cluster.kubernetes import KubernetesScaler
from menuwatch.db.pool import Pool
from menuwatch.engine.loop import Loop


class PodOrders(Loop):
    """Looks every second: an order waits for workers that finish what they have, which nobody announces."""

    name: ClassVar[str] = "pod-orders"

    def __init__(self, pool: Pool, scaler: KubernetesScaler, *, interval: float = 1.0) -> None:
        super().__init__(interval=interval)
        self._pool = pool
        self._scaler = scaler

    async def step(self) -> float | None:
        """One step of the order that is under way."""
        await self._scaler.carry_out(self._pool)
        return None
