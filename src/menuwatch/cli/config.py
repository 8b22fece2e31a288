"""`menuwatch config`: the settings in effect."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from menuwatch.cli.options import LimitedOutput
from menuwatch.cli.output import Column
from menuwatch.cli.startup import load_settings
from menuwatch.ops.installation import settings_shown

COLUMNS = (
    Column("Setting", "variable", rank=1),
    Column("Value", lambda setting: setting.value or None, rank=2),
    Column("From", lambda setting: "environment" if setting.variable in os.environ else "default", rank=3),
    Column("Meaning", "meaning"),
)


def config(
    out: LimitedOutput,
    changed: Annotated[bool, typer.Option("--changed", help="Only settings that differ from their default.")] = False,
) -> None:
    """List settings with their values and sources. Secrets are shown only as set or not."""
    rows = [setting for setting in settings_shown(load_settings()) if setting.changed or not changed]
    out.show(rows, COLUMNS, "setting", empty="All settings have their defaults.")
