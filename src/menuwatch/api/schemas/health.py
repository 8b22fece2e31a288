"""Health of the process and of what it stands on."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field


class Alive(BaseModel):
    """The process answers."""

    status: Literal["ok"] = Field(description="Always `ok`: a process that is not does not answer.")
    version: str = Field(description="Version of Menuwatch.")


class Check(BaseModel):
    """One thing that the server stands on."""

    ok: bool = Field(description="Whether it is as it must be.")
    detail: str = Field(description="What was found, and how to mend it where it is wrong.")


class Checks(BaseModel):
    """Everything that was checked."""

    database: Check = Field(description="The database answers.")
    migrations: Check = Field(description="Its schema is the one of this version.")
    storage: Check = Field(description="The archive's folder can be written.")
    proxies: Check = Field(
        description="At least one proxy is active. Without, workers do not start, those that run wait until a probe brings one "
        "back, and the server works."
    )
    hosts: Check = Field(
        description="Each platform has a host that is asked. Where an operator paused it, or its circuit is open, work waits, and the "
        "server works."
    )


class Readiness(BaseModel):
    """Whether the server can do its work."""

    status: Literal["ready", "not_ready"] = Field(description="`not_ready` when database, migrations or storage fail.")
    checks: Checks = Field(description="Each check with what it found.")
    warnings: list[str] = Field(description="What does not keep the server from working, but should be mended.")
