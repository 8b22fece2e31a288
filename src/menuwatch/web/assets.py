"""Styles and scripts: read once, served compressed at URLs that contain their hash, so browsers may cache them forever."""

from __future__ import annotations

import gzip
import mimetypes
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

from fastapi import FastAPI, Request
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.responses import Response

from menuwatch.core.errors import Refused

HERE = Path(__file__).parent
VENDOR = HERE / "vendor"
"""Third-party files; hatch_build.py puts them there when the package is installed."""

_FOR_GOOD = "public, max-age=31536000, immutable"
_SMALL = 600
"""Below this size in bytes compression gains nothing."""


class _Asset(Struct, frozen=True):
    mark: str
    kind: str
    body: bytes
    packed: bytes | None


class Assets:
    """A face's styles and scripts by name. A name may stand for several files, which are joined in their order."""

    def __init__(self, bundles: Mapping[str, Sequence[Path]]) -> None:
        """Raises Refused for a missing file, with how to build it. A style sheet refers to an asset named before it as
        `url(asset:NAME)`."""
        self._assets: dict[str, _Asset] = {}
        for name, paths in bundles.items():
            self._assets[name] = _read(name, paths, self._assets)

    def install(self, app: FastAPI) -> None:
        """Serves the assets below `/static` of an app."""

        async def static(request: Request, mark: str, name: str) -> Response:
            if (response := self.answer(request, mark, name)) is None:
                raise HTTPException(404)
            return response

        app.add_api_route("/static/{mark}/{name}", static, methods=["GET"])

    def path(self, name: str) -> str:
        """URL path of an asset, relative to the mount point."""
        return f"/static/{self._assets[name].mark}/{name}"

    def answer(self, request: Request, mark: str, name: str) -> Response | None:
        """The file, None if it does not exist. An outdated hash gets the current content, marked as not cacheable."""
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


def _read(name: str, paths: Sequence[Path], known: Mapping[str, _Asset]) -> _Asset:
    missing = [path for path in paths if not path.is_file()]
    if missing:
        names = ", ".join(path.name for path in missing)
        raise Refused(
            f"this installation lacks {names}, which its pages need: install it again (in a checkout: make clean setup)"
        )
    body = b"\n".join(path.read_bytes() for path in paths)
    for other, asset in known.items():
        body = body.replace(b"url(asset:%s)" % other.encode(), b"url(../%s/%s)" % (asset.mark.encode(), other.encode()))
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    dense = kind.startswith(("image/png", "font/"))
    packed = gzip.compress(body, 9, mtime=0) if len(body) > _SMALL and not dense else None
    return _Asset(blake2b(body, digest_size=6).hexdigest(), kind, body, packed)
