"""How many workers it takes, in words, from how fast work was done in the last hour. Pure."""

from __future__ import annotations

from menuwatch.operations.overview import Drain
from menuwatch.operations.wording import many, span


def advice(drain: Drain, ready: int, living: int, paused: int = 0) -> str:
    """What to do about the number of workers, if anything; `paused` are among the `living`."""
    if not ready:
        return "Nothing waits: no more workers are needed for now."
    waits = f"{many(ready, 'task')} {'waits' if ready == 1 else 'wait'}"
    if living and paused >= living:
        if living == 1:
            return f"{waits}, and the only worker is paused: nothing is taken until it is resumed."
        return f"{waits}, and all {living:,} workers are paused: nothing is taken until they are resumed."
    living -= paused
    if drain.worker_hours is None:
        return f"{waits}, and none of that kind was completed in the last hour: there is no pace to go by."
    for_an_hour = drain.needed[1] or 1
    if not living:
        return f"{waits} and nobody works: {many(for_an_hour, 'worker')} would have it done within an hour."
    seconds = (drain.hours or 0) * 3600
    takes = "less than a minute" if seconds < 60 else f"about {span(seconds)}"
    if for_an_hour <= living:
        return f"{waits}, which takes {takes}: {many(living, 'worker')} {'is' if living == 1 else 'are'} enough."
    return f"{waits}, which takes {takes}. With {many(for_an_hour - living, 'more worker')} it would be done within an hour."
