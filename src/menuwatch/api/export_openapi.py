"""Writes the description of the API into a file.

python -m menuwatch.api.export_openapi [FILE]     to openapi.json where no file is named
"""

from __future__ import annotations

import sys
from pathlib import Path

from menuwatch.api.app import bare_app
from menuwatch.api.openapi import text


def main(arguments: list[str]) -> int:
    """Writes it."""
    target = Path(arguments[0] if arguments else "openapi.json")
    target.write_text(text(bare_app().openapi()), encoding="utf-8")
    print(f"wrote {target}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
