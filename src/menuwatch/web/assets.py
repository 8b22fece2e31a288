"""Styles and scripts: read once, served compressed, under addresses that name their content: browsers may keep them for good."""

from __future__ import annotations

import gzip
import mimetypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from menuwatch.core.errors import Refused

HERE = Path(__file__).parent
VENDOR = HERE / "vendor"
"""What comes from others; hatch_build.py puts it there when the package is installed."""

_FOR_GOOD = "public, max-age=31536000, immutable"
_SMALL = 600
"""Below so many bytes compression gains nothing."""


@dataclass(frozen=True, slots=True)
class _Asset:
    mark: str
    kind: str
    body: bytes
    packed: bytes | None


class Assets:
    """A face's styles and scripts by name. A name may stand for several files, which are joined in their order."""

    def __init__(self, bundles: Mapping[str, Sequence[Path]]) -> None:
        """Raises Refused where a file is missing, saying how it comes there."""
        self._assets = {name: _read(name, paths) for name, paths in bundles.items()}

    def path(self, name: str) -> str:
        """The address of one, relative to where its face is mounted."""
        return f"/static/{self._assets[name].mark}/{name}"

    def answer(self, request: Request, mark: str, name: str) -> Response | None:
        """The file, None where there is none of that name. An outdated mark gets the present content, which is not to be kept."""
        found = self._assets.get(name)
        if found is None:
            return None
        headers = {"Cache-Control": _FOR_GOOD if mark == found.mark else "no-cache", "Vary": "Accept-Encoding"}
        headers["ETag"] = f'"{found.mark}"'
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        if found.packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
            return Response(found.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=found.kind)
        return Response(found.body, headers=headers, media_type=found.kind)


def _read(name: str, paths: Sequence[Path]) -> _Asset:
    missing = [path for path in paths if not path.is_file()]
    if missing:
        names = ", ".join(path.name for path in missing)
        raise Refused(
            f"this installation lacks {names}, which its pages need: install it again (in a checkout: make clean setup)"
        )
    body = b"\n".join(path.read_bytes() for path in paths)
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    packed = gzip.compress(body, 9, mtime=0) if len(body) > _SMALL and not kind.startswith("image/png") else None
    return _Asset(blake2b(body, digest_size=6).hexdigest(), kind, body, packed)
