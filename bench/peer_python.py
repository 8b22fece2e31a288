"""Installs other projects' packages into a folder that git does not see."""

from __future__ import annotations

import filecmp
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_PATIENCE = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """The Python that runs a contestant's program; `missing` says why there is none."""

    python: str = ""
    missing: str | None = None


def ours() -> Runtime:
    """The Python that has Menuwatch."""
    return Runtime(python=sys.executable)


def python_with(folder: Path) -> Runtime:
    """A Python with the packages of `folder`/requirements.txt, installed into `folder`/.peers when they changed."""
    own = folder / ".peers" / "venv"
    python = own / "bin" / "python"
    wanted, installed = folder / "requirements.txt", own / "requirements.txt"
    try:
        if not installed.exists() or not filecmp.cmp(wanted, installed, shallow=False):
            _run(sys.executable, "-m", "venv", "--clear", str(own))
            _run(str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check", "-r", str(wanted))
            shutil.copy(wanted, installed)
    except (OSError, subprocess.SubprocessError) as error:
        said = [line for line in str(getattr(error, "stderr", None) or error).splitlines() if line.strip()]
        return Runtime(missing=f"its packages could not be installed: {said[-1][:200] if said else error}")
    return Runtime(python=str(python))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=_PATIENCE)
