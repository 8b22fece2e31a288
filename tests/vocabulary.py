"""Words and phrases that may not appear in source, templates, docs and the API description: `python -m tests.vocabulary`."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACES = ("src", "docs", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "openapi.json", "deploy")
TEXT = frozenset({".py", ".sql", ".html", ".js", ".css", ".md", ".json", ".toml", ".yaml", ".yml"})

FORBIDDEN = (
    "anew", "as it were", "befell", "bereft", "by itself", "courier", "every face", "faces", "fares", "hereof", "in hand", "is asked",
    "journey", "ledger", "look at", "mischief", "nobody", "notebook", "put off", "put to rest", "said anew", "shelf", "somebody",
    "thereof", "told", "torn out", "wardrobe", "what came of", "who has it", "whoever", "whomever",
)  # fmt: skip

ALLOWED = ("(`told`)", "_put_off`", "worker_told", "/ledger`")
"""Phrases in which one of these words is meant otherwise, or which SPEC fixes."""


def find(words: Iterable[str], lines: Iterable[tuple[str, int, str]]) -> list[tuple[str, str]]:
    """Each of these words (whole words, upper or lower case) with where it stands, as `path:line: text`."""
    pattern = re.compile(rf"(?<![a-z])({'|'.join(map(re.escape, words))})(?![a-z])", re.IGNORECASE)
    allowed = re.compile("|".join(map(re.escape, ALLOWED)), re.IGNORECASE) if ALLOWED else None
    return [
        (word.lower(), f"{path}:{n}: {text.strip()[:120]}")
        for path, n, text in lines
        for word in pattern.findall(allowed.sub("", text) if allowed else text)
    ]


def tracked_lines() -> list[tuple[str, int, str]]:
    """Every line of the tracked text files below PLACES."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *PLACES],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split("\0")  # fmt: skip
    files = [ROOT / name for name in names if Path(name).suffix in TEXT and (ROOT / name).is_file()]
    return [
        (str(file.relative_to(ROOT)), n, text)
        for file in files
        for n, text in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
    ]


def main() -> None:
    """Exit code 1 if a forbidden word appears."""
    hits = find(FORBIDDEN, tracked_lines())
    for word, where in hits:
        print(f"{where}  [{word}: see docs/reference/glossary.md]")
    sys.exit(bool(hits))


if __name__ == "__main__":
    main()
