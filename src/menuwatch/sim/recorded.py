"""Recorded answers, served verbatim from a folder.

Files `*.json` and `*.json.gz` with `data.filteredProducts` are pages of the store that their products name (pages in the order of
the file names); with `data.filteredDispensaries` they are records of stores. A `*.txt` is page 0 of the store that is called
like the file, whatever it holds: bodies that are no JSON. Other files are left alone.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec


class Recorded:
    """The answers of one folder. Raises OSError where it cannot be read."""

    def __init__(self, folder: Path) -> None:
        self._pages: dict[str, list[bytes]] = {}
        self._records: list[tuple[dict[str, Any], bytes]] = []
        for path in sorted(folder.iterdir()):
            if path.suffix == ".txt":
                self._pages[path.stem] = [path.read_bytes()]
            elif path.name.endswith((".json", ".json.gz")):
                body = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
                self._take(body)

    @property
    def stores(self) -> list[str]:
        """Ids of the stores whose menus are there."""
        return sorted(self._pages)

    def _take(self, body: bytes) -> None:
        try:
            data = msgspec.json.decode(body)["data"]
            if "filteredProducts" in data:
                store = data["filteredProducts"]["products"][0]["DispensaryID"]
                self._pages.setdefault(store, []).append(body)
            elif "filteredDispensaries" in data:
                self._records.extend((entry, body) for entry in data["filteredDispensaries"])
        except (msgspec.MsgspecError, KeyError, IndexError, TypeError):
            return

    def menu_page(self, store: str, page: int) -> bytes | None:
        """That page as recorded; an empty one behind the last; None for a store that is not there."""
        pages = self._pages.get(store)
        if pages is None:
            return None
        if page < len(pages):
            return pages[page]
        return (
            b'{"data":{"filteredProducts":{"products":[],"queryInfo":{"totalCount":0,"totalPages":%d,'
            b'"__typename":"queryInfoType"},"__typename":"FilteredProducts"}}}' % len(pages)
        )

    def dispensaries(self, wanted: Mapping[str, Any]) -> bytes | None:
        """The recorded answer about one store; a bare record for a store that has only a menu; None where there is neither."""
        key = wanted.get("cNameOrID")
        if key is None:
            return None
        for entry, body in self._records:
            if key in (entry.get("id"), entry.get("cName")):
                return body
        if key in self._pages:
            bare = {"__typename": "Dispensaries", "id": key, "cName": key, "name": key, "status": "open"}
            return msgspec.json.encode({"data": {"filteredDispensaries": [bare]}})
        return None
