"""How many workers there are and should be."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from menuwatch.api.schemas.common import Input


class ReplicaCount(BaseModel):
    """How many run, should run, and may."""

    current: int = Field(description="How many run.")
    desired: int | None = Field(description="How many should; null where nobody holds a number.")
    low: int = Field(description="The fewest that may be asked for (`WORKERS_MIN`).")
    high: int = Field(description="The most that may be asked for (`WORKERS_MAX`).")
    backend: str = Field(
        description="What runs them; `none` where nothing that could change their number is connected."
    )
    unit: Literal["pod", "worker"] = Field(description="What is counted.")
    doing: str | None = Field(
        description="What is under way between the two numbers, or in the way, in words; null where nothing is."
    )
    why_not: str | None = Field(description="Why their number cannot be changed from here; null where it can.")


class Scale(Input):
    """A number to have."""

    replicas: int = Field(description="How many to have, within `low` and `high`.", examples=[8])
