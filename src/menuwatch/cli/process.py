"""What every command begins with."""

from __future__ import annotations

from typing import Any

from menuwatch.core import telemetry
from menuwatch.core.settings import Settings
from menuwatch.db import address


def settings(*, quiet: bool = True, **overrides: Any) -> Settings:
    """The settings of this process, with logging set up. One-shot commands are `quiet`: only warnings are logged."""
    found = Settings.from_env(**overrides)
    if found.database_url:
        address.check(found.database_url)
    level = "warning" if quiet and found.log_level == "info" else found.log_level
    telemetry.configure(found.log_format, level)
    return found
