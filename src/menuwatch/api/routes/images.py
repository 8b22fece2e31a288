"""Pictures of products and logos of brands: cut, resized and encoded as the address says."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from menuwatch.api.answers import matches
from menuwatch.api.problems import BrokenPicture, Missing, NotSigned, RefusedRequest, Unavailable, respond
from menuwatch.core.settings import Settings
from menuwatch.imaging import signing
from menuwatch.imaging.accept import names_images
from menuwatch.imaging.derived import Derived
from menuwatch.imaging.files import FOLDER, BadPath, ImageFiles, NoFile
from menuwatch.imaging.params import BadParameters, Params, parse
from menuwatch.imaging.pictures import Busy, Picture, Pictures
from menuwatch.imaging.signing import Gatekeeper
from menuwatch.imaging.vips import NoImage

router = APIRouter(tags=["images"])

_PLACEHOLDER = "placeholder"
_NEVER_KEPT = {"Cache-Control": "no-store"}
_FOREVER = "public, max-age=31536000, immutable"
_A_WHILE = "public, max-age=300"
_SAFE = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'"}
_ESCAPED = re.compile(rb"%(2f|5c|00)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Gallery:
    """What this route stands on."""

    pictures: Pictures
    gate: Gatekeeper

    @classmethod
    def of(cls, settings: Settings) -> Gallery:
        """Made of the settings, without touching a disk. Raises Refused for presets that mean nothing."""
        derived = Derived(settings.storage / "cache" / FOLDER, settings.image_cache_mb * 1_000_000)
        pictures = Pictures(ImageFiles(settings.storage), derived, threads=settings.image_threads)
        return cls(pictures, Gatekeeper(settings.image_url_key, settings.image_presets))


def _query(name: str, schema: Mapping[str, Any], description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": dict(schema), "description": description}


_SIDE = {"type": "integer", "minimum": 1, "maximum": 4000}
_PARAMETERS = [
    _query("w", _SIDE, "Width in pixels; in proportion to the height when left out."),
    _query("h", _SIDE, "Height in pixels; in proportion to the width when left out."),
    _query("q", {"type": "integer", "minimum": 1, "maximum": 100, "default": 80}, "Quality; PNG knows none."),
    _query(
        "fit",
        {"type": "string", "enum": ["cover", "contain", "fill", "inside", "outside"], "default": "cover"},
        "With both `w` and `h`: `cover` fills both and cuts what is over, `contain` shows all with a margin, `fill` distorts, "
        "`inside` is the largest in proportion that fits in, `outside` the smallest that covers.",
    ),
    _query("blur", {"type": "number", "minimum": 0.3, "maximum": 1000}, "Blurs; the sigma in pixels of the result."),
    _query("gray", {"type": "string", "enum": ["1", "0"]}, "`1`: without colours."),
    _query(
        "format",
        {"type": "string", "enum": ["webp", "jpeg", "png", "avif"]},
        "Format of the answer; by the Accept header when left out.",
    ),
    _query("s", {"type": "string"}, "Signature, where the server asks for one (docs/explanation/images.md)."),
    _query("expires", {"type": "integer"}, "Until when the signature holds, seconds since 1970; it is signed too."),
]
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_CONTENT: dict[str, Any] = {f"image/{name}": _BINARY for name in ("webp", "jpeg", "png", "avif")}


@router.get(
    "/img/{path:path}",
    summary="A picture, as large and in the format that you want",
    response_class=Response,
    openapi_extra={"parameters": _PARAMETERS},
    responses={
        200: {"description": "The picture.", "content": _CONTENT},
        304: {"description": "The client has it already."},
    },
)
async def get_image(
    request: Request,
    path: Annotated[
        str,
        Path(description="A product's `local_image_path`, with or without `images/`; `placeholder` for a stand-in."),
    ],
) -> Response:
    """Made once and kept. Where there is no such picture the status is 404, with a grey stand-in of that size for whoever asks for
    pictures (`Accept: image/…`). Nothing but pictures is ever sent."""
    gallery: Gallery = request.app.state.gallery
    try:
        params = _params(request, gallery, path)
        if path == _PLACEHOLDER:
            return await _sent(request, gallery.pictures, await gallery.pictures.stand_in(params, _accept(request)))
        if _ESCAPED.search(request.scope.get("raw_path") or b""):
            raise BadPath("an escaped slash, backslash or NUL is no part of a path")
        try:
            found = await gallery.pictures.find(path, params, _accept(request))
            return await _sent(request, gallery.pictures, found)
        except NoFile as error:
            return await _missing(request, gallery.pictures, params, str(error))
    except BadPath as error:
        said = f"the path cannot be used: {error}"
        raise RefusedRequest(said, [{"parameter": "path", "in": "path", "detail": str(error)}], _NEVER_KEPT) from error
    except BadParameters as error:
        wrong = [{"parameter": name, "in": "query", "detail": said} for name, said in error.errors]
        raise RefusedRequest(str(error), wrong, _NEVER_KEPT) from error
    except signing.NotSigned as error:
        raise NotSigned(str(error), headers=_NEVER_KEPT) from error
    except NoImage as error:
        raise BrokenPicture(str(error), headers=_NEVER_KEPT) from error
    except Busy as error:
        raise Unavailable(str(error), headers={**_NEVER_KEPT, "Retry-After": "2"}) from error


def _accept(request: Request) -> str | None:
    found = request.headers.getlist("accept")
    return ",".join(found) if found else None


def _params(request: Request, gallery: Gallery, path: str) -> Params:
    pairs = request.query_params.multi_items()
    proof: dict[str, str] = {}
    for name, value in pairs:
        if name in ("s", "expires"):
            if name in proof:
                raise BadParameters([(name, "is given more than once")])
            proof[name] = value
    params = parse((name, value) for name, value in pairs if name not in proof)
    bare = path.removeprefix(f"{FOLDER}/")
    gallery.gate.check(bare, params, s=proof.get("s"), expires=proof.get("expires"), now=time.time())
    return params


async def _sent(request: Request, pictures: Pictures, picture: Picture, *, status: int = 200) -> Response:
    headers = {**_SAFE, "ETag": picture.etag, "Cache-Control": _FOREVER if picture.forever else _A_WHILE}
    if picture.negotiated:
        headers["Vary"] = "Accept"
    if status != 200:
        headers |= _NEVER_KEPT
        del headers["ETag"]
    elif matches(request.headers.get("if-none-match"), picture.etag):
        return Response(status_code=304, headers=headers)
    body = await pictures.data(picture)
    return Response(body, status_code=status, headers=headers, media_type=picture.media_type)


async def _missing(request: Request, pictures: Pictures, params: Params, reason: str) -> Response:
    if names_images(_accept(request)):
        stand_in = await pictures.stand_in(params, _accept(request))
        answer = await _sent(request, pictures, stand_in, status=404)
    else:
        answer = respond(request, Missing(reason, headers=_NEVER_KEPT))
    # Whether it is a picture or a text depends on the header, whatever the format.
    answer.headers["Vary"] = "Accept"
    return answer
