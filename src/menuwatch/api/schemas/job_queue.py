"""Asking for work: one task, many, or one for every store of a state."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, FailFast, Field

from menuwatch.api.schemas.common import Input, Instant, Text
from menuwatch.api.schemas.tasks import AnyRole, NewTask, Priority, sensible
from menuwatch.tasks.model import PRIORITY_CHAINED, Role

BATCH_MAX = 10_000
"""Most tasks in one call."""


def _not_too_many(value: Any) -> Any:
    # Before any of them is looked at: a batch that is far too long costs no more than its parsing.
    if isinstance(value, list) and len(value) > BATCH_MAX:
        raise ValueError(
            f"{len(value):,} tasks are too many: at most {BATCH_MAX:,} are taken in one call; send them in several"
        )
    return value


class Batch(Input):
    """Tasks to enqueue: all of them, or none where one cannot be used."""

    tasks: Annotated[list[NewTask], FailFast(), BeforeValidator(_not_too_many)] = Field(
        min_length=1, max_length=BATCH_MAX, description="The tasks."
    )


class BatchItem(BaseModel):
    """What became of one task of a batch."""

    id: int = Field(description="Number of the task.")
    created: bool = Field(description="False when such a task was waiting already, or is in this batch before.")


class BatchDone(BaseModel):
    """What became of a batch."""

    requested: int = Field(description="Tasks that were asked for.")
    created: int = Field(description="Of these, those that are new.")
    items: list[BatchItem] = Field(description="One for each, in the order of the request.")


class EnqueueState(Input):
    """Work for every store of a state."""

    state_code: Text = Field(description="State or province, by two letters.")
    role: AnyRole = Field(Role.PAYLOAD_FETCH, description="`payload_fetch` or `product_discovery`.")
    platform: Text | None = Field(None, description="Only stores of this platform.")
    priority: Priority = Field(
        PRIORITY_CHAINED,
        description="Higher is sooner: 10 on demand, 20 and more urgent.",
    )
    scheduled_for: Annotated[Instant, AfterValidator(sensible)] | None = Field(
        None, description="Not before this time (ISO 8601 with offset); at once when left out."
    )


class StateDone(BaseModel):
    """What became of the wish for a state."""

    state_code: str = Field(description="The state.")
    role: str = Field(description="The kind of work.")
    stores: int = Field(description="Stores of the state.")
    requested: int = Field(description="Of these, those that can be crawled: switched on, and known to the platform.")
    created: int = Field(description="New tasks; the others had one waiting.")
