"""`analytics_refresh`: the figures for analysts, made anew. Touches no network and no product."""

from __future__ import annotations

from datetime import timedelta

from menuwatch.analytics.model import UnderWay
from menuwatch.analytics.refresh import refresh
from menuwatch.pipeline.parts import Parts
from menuwatch.tasks.model import Task
from menuwatch.tasks.outcome import Done, Outcome, Postpone

_AGAIN = timedelta(minutes=1)


class AnalyticsRefresh:
    """The figures are derived and are published all at once, whoever made them: a task that is lost on the way, or done twice, does no
    harm. So they are not part of the transaction that ends the task."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def __call__(self, task: Task, _ctx: object) -> Outcome:
        made = await refresh(self._parts.pool, window=self._parts.analytics_window)
        if isinstance(made, UnderWay):
            # It may have read already what changed since.
            return Postpone(reason="another refresh of the figures is under way", after=_AGAIN)
        return Done(
            result={
                "run_id": made.run_id,
                "seconds": round(made.seconds, 3),
                "rows": {step.step: step.rows for step in made.steps},
            }
        )
