"""When a job submits its next page, and when an attempt that failed is made again. Pure: the clock and chance are passed in.

A job has one pacer, whichever server it is in, and all it knows is in rows: it looks at a job when that is due, and either submits one
page or says when it is to be looked at again. Whoever changes something (a page was read, a person retried) makes the job due as soon
as its pace allows, and leaves the rest to the pacer, so that nobody else ever schedules anything.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta

GAP_SECONDS = (5.0, 15.0)
"""Between two submissions of a job: a random time from the first to the second (SPEC section 12)."""
MIXING = 15
"""So many pages ready, and submissions begin in earnest: one of them is a random one of many."""
RETRIES = 3
"""After the first attempt, so there are four in all."""
RETRY_BASE = timedelta(minutes=15)
RETRY_JITTER = timedelta(minutes=5)
LONGEST_PAUSE = timedelta(hours=1)
"""However long a provider asks us to wait."""


def gap(rng: random.Random) -> timedelta:
    """The time until the next submission."""
    return timedelta(seconds=rng.uniform(*GAP_SECONDS))


def retry_wait(failures: int, rng: random.Random) -> timedelta | None:
    """How long after its n-th failure (from 1) an attempt is made again; None when it is not."""
    if failures < 1:
        raise ValueError(f"failures are counted from 1, got {failures}")
    if failures > RETRIES:
        return None
    doubled: int = 2 ** (failures - 1)
    return RETRY_BASE * doubled + RETRY_JITTER * rng.random()


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a job stands. `ready` counts pages that may be submitted now, by priority; `waiting` those whose retry is not due, the
    first of them at `retry_at`; `under_way` those that were submitted and whose time is not up, of which `funnel` are searches and
    further pages of results; the first of their deadlines is `deadline_at`."""

    begun: bool
    mixing: bool
    not_before: datetime
    ready: tuple[int, int]
    waiting: int
    retry_at: datetime | None
    under_way: int
    funnel: int
    deadline_at: datetime | None


@dataclass(frozen=True, slots=True)
class Submit:
    """One page of that priority (1 is best), at random."""

    priority: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing is to be done before `until`, unless something happens."""

    until: datetime


@dataclass(frozen=True, slots=True)
class Over:
    """Nothing is left to do."""


def is_mixing(standing: Standing) -> bool:
    """Whether pages are submitted without waiting for more to choose from.

    The first search goes at once. Then one waits for what it leads to, so that searches do not follow each other in a burst; unless
    there is enough to choose from, or nothing is under way that could add any. Once it has begun it stays.
    """
    return standing.mixing or sum(standing.ready) >= MIXING or (standing.begun and standing.funnel == 0)


def decide(standing: Standing, now: datetime) -> Submit | Wait | Over:
    """What is to be done with the job now."""
    ready = sum(standing.ready)
    if not ready and not standing.waiting and not standing.under_way:
        return Over()
    if not ready or (standing.begun and not is_mixing(standing)):
        soonest = [moment for moment in (standing.retry_at, standing.deadline_at) if moment is not None]
        return Wait(min(soonest))
    if now < standing.not_before:
        return Wait(standing.not_before)
    return Submit(1 if standing.ready[0] else 2)
