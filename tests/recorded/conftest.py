"""What a replay needs, without a network."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from menuwatch.archive.files import FileArchive
from menuwatch.config.settings import Settings
from menuwatch.core.clock import SystemClock
from menuwatch.db.pool import Pool
from menuwatch.pipeline.context import HandlerContext
from menuwatch.platforms.registry import platforms


@pytest.fixture
def parts(pool: Pool, tmp_path: Path) -> HandlerContext:
    def no_session(**_: Any) -> Any:
        raise AssertionError("a replay never touches the network")

    return HandlerContext(
        pool=pool,
        clock=SystemClock(),
        archive=FileArchive(tmp_path / "storage"),
        platforms=platforms(Settings()),
        open_session=no_session,
        suspect_share=0.4,
        blocked_wait=timedelta(seconds=1),
    )
