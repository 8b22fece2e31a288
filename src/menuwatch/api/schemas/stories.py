"""The story of a task."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from menuwatch.api.schemas.attempts import Attempt
from menuwatch.api.schemas.tasks import Explanation


class Origin(BaseModel):
    """What enqueued a task."""

    kind: Literal["task", "schedule", "plan", "request"] = Field(
        description="Another task, a schedule, the plan of a day, or somebody who asked for it."
    )
    text: str = Field(description="That in words.")
    task_id: int | None = Field(description="The other task.")
    role: str | None = Field(description="Its kind of work.")


class HostMoment(BaseModel):
    """Something that befell a host while the task asked it."""

    host: str = Field(description="The host.")
    kind: Literal["cooldown", "slower", "circuit_opened", "circuit_closed"] = Field(description="What it was.")
    reason: str = Field(description="Why.")
    until: datetime | None = Field(description="Until when it lasts.")
    happened_at: datetime = Field(description="When it was.")


class Followed(BaseModel):
    """A task that followed."""

    id: int = Field(description="Number of the task.")
    role: str = Field(description="Its kind of work.")
    dispensary_id: int | None = Field(description="The store it is for.")
    status: str = Field(description="Where it stands.")
    created_at: datetime = Field(description="When it was enqueued.")


class Story(BaseModel):
    """How a task came to where it is, as far as that is kept."""

    enqueued_at: datetime = Field(description="When it was enqueued.")
    origin: Origin = Field(description="By what.")
    requests: list[Attempt] = Field(description="Its requests, the oldest first; of very many the newest 500.")
    requests_total: int = Field(description="How many there are.")
    troubles: int = Field(description="Of these, those that were not answered as asked.")
    rotations: int = Field(description="Times that proxy or browser were changed.")
    waited_ms: float = Field(description="How long they waited for their turns, in ms.")
    elapsed_ms: float = Field(description="How long they took, in ms.")
    bytes: int = Field(description="Size of all answers, decoded.")
    events: list[HostMoment] = Field(description="What befell the hosts meanwhile.")
    payload_id: int | None = Field(description="The payload that it archived.")
    followed: list[Followed] = Field(description="What followed from it.")


class ExplanationWithStory(Explanation):
    """Why a task is where it is, and how it came there."""

    story: Story = Field(description="How it came there.")
