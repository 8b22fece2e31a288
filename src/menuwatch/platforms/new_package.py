"""Writes the package of a new platform: an adapter that reads a made-up menu, with a sample file and tests that pass."""

from __future__ import annotations

import keyword
from importlib.resources import files
from pathlib import Path

from menuwatch.core.errors import Refused
from menuwatch.platforms.registry import NAME, NAME_RULE, names

_FILES = {
    "pyproject.toml": "pyproject.toml.txt",
    "src/{package}/__init__.py": "init.py.txt",
    "src/{package}/payload.py": "payload.py.txt",
    "src/{package}/normalize.py": "normalize.py.txt",
    "src/{package}/adapter.py": "adapter.py.txt",
    "tests/sample.json": "sample.json.txt",
    "tests/test_{name}.py": "test.py.txt",
}
"""Files of the package and their templates."""
_LONGEST = 40


def write_package(name: str, folder: Path) -> list[Path]:
    """Writes the package `menuwatch-NAME` into a folder of that name in `folder`; returns its files.

    Raises Refused for an invalid or known name, and for a folder that exists.
    """
    if not NAME.fullmatch(name) or len(name) > _LONGEST or keyword.iskeyword(name):
        raise Refused(f"invalid platform name {name!r}: {NAME_RULE}, at most {_LONGEST} characters")
    if name in names():
        raise Refused(f"there is a platform {name!r} already: choose another name")
    root = folder / f"menuwatch-{name}"
    if root.exists():
        raise Refused(f"{root} exists already: remove it, or choose another folder with --into")
    package = f"menuwatch_{name}"
    words = {
        "{{name}}": name,
        "{{NAME}}": name.upper(),
        "{{package}}": package,
        "{{class}}": "".join(part.capitalize() for part in name.split("_")),
        "{{title}}": " ".join(part.capitalize() for part in name.split("_")),
    }
    templates = files("menuwatch.platforms") / "skeleton"
    written = []
    for path, template in _FILES.items():
        text = (templates / template).read_text(encoding="utf-8")
        for word, value in words.items():
            text = text.replace(word, value)
        target = root / path.format(package=package, name=name)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        except OSError as error:
            raise Refused(f"{target} cannot be written: {error.strerror}") from error
        written.append(target)
    return written
