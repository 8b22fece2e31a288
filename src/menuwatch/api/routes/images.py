"""Product images and brand logos, cropped, resized and encoded as the URL says."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from msgspec import Struct

from menuwatch.api.problems import BrokenPicture, InvalidValue, Missing, NotSigned, RefusedRequest, Unavailable, respond
from menuwatch.api.responses import matches
from menuwatch.config.settings import Settings
from menuwatch.images import signing
from menuwatch.images.accept import names_images
from menuwatch.images.cache import OTHER_SIZES, ImageCache
from menuwatch.images.files import FOLDER, BadPath, ImageFiles, NoFile
from menuwatch.images.params import BadParameters, Params, parse
from menuwatch.images.serving import ImageServer, Overloaded, ServedImage
from menuwatch.images.signing import UrlSigner
from menuwatch.images.vips import InvalidImage
from menuwatch.storage.service import open_storage

router = APIRouter(tags=["images"])

_PLACEHOLDER = "placeholder"
_NO_STORE = {"Cache-Control": "no-store"}
_IMMUTABLE = "public, max-age=31536000, immutable"
_SHORT_LIVED = "public, max-age=300"
_SAFE = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'"}
_ESCAPED = re.compile(rb"%(2f|5c|00)", re.IGNORECASE)


class ImageParts(Struct, frozen=True):
    """The parts that the route uses."""

    server: ImageServer
    signer: UrlSigner

    @classmethod
    def of(cls, settings: Settings) -> ImageParts:
        """Raises Refused for an invalid IMAGE_PRESETS. Touches no disk."""
        room = settings.image_cache_mb * 1_000_000
        # Without a key anyone can request other sizes than the presets: these have a share of the cache of their own.
        free_room = 0 if settings.image_url_key else room // 4
        server = ImageServer(
            ImageFiles(open_storage(settings)),
            ImageCache(settings.storage / "cache" / FOLDER, room - free_room),
            free_cache=ImageCache(settings.storage / "cache" / OTHER_SIZES, free_room),
            threads=settings.image_threads,
        )
        return cls(server, UrlSigner(settings.image_url_key, settings.image_presets))


def _query(name: str, schema: Mapping[str, Any], description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": dict(schema), "description": description}


_SIDE = {"type": "integer", "minimum": 1, "maximum": 4000}
_PARAMETERS = [
    _query("w", _SIDE, "Width in pixels; proportional to the height if omitted."),
    _query("h", _SIDE, "Height in pixels; proportional to the width if omitted."),
    _query("q", {"type": "integer", "minimum": 1, "maximum": 100}, "Quality, 80 by default, 50 as AVIF; not for PNG."),
    _query(
        "fit",
        {"type": "string", "enum": ["cover", "contain", "fill", "inside", "outside"], "default": "cover"},
        "With both `w` and `h`: `cover` fills both and crops, `contain` fits with margins, `fill` distorts, `inside` "
        "is the largest proportional size that fits, `outside` the smallest that covers.",
    ),
    _query(
        "blur",
        {"type": "number", "minimum": 0.3, "maximum": 1000},
        "Sigma of a Gaussian blur, in pixels of the result.",
    ),
    _query("gray", {"type": "string", "enum": ["1", "0"]}, "`1` for grayscale."),
    _query(
        "format",
        {"type": "string", "enum": ["webp", "jpeg", "png", "avif"]},
        "Format of the result; chosen by the Accept header if omitted.",
    ),
    _query("s", {"type": "string"}, "Signature, if the server requires one (docs/explanation/images.md)."),
    _query("expires", {"type": "integer"}, "Expiry of the signature, in seconds since 1970; part of the signed URL."),
]
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_CONTENT: dict[str, Any] = {f"image/{name}": _BINARY for name in ("webp", "jpeg", "png", "avif")}
# Generators of clients know no images: for them it is bytes.
_CONTENT["application/octet-stream"] = _BINARY


@router.get(
    "/img/{path:path}",
    summary="Get an image in a given size and format",
    response_class=Response,
    openapi_extra={"parameters": _PARAMETERS},
    responses={
        200: {"description": "The image.", "content": _CONTENT},
        304: {"description": "Not modified."},
    },
)
async def get_image(
    request: Request,
    path: Annotated[
        str,
        Path(
            description="The product's `local_image_path`, with or without `images/`; `placeholder` for the "
            "placeholder image."
        ),
    ],
) -> Response:
    """The result is cached on disk. A missing image returns status 404, with a gray placeholder of that size for clients that
    accept images (`Accept: image/…`). The response is always an image or a problem."""
    parts: ImageParts = request.app.state.images
    try:
        params, free = _params(request, parts, path)
        if path == _PLACEHOLDER:
            return await _sent(
                request, parts.server, await parts.server.placeholder(params, _accept(request), free=free)
            )
        if _ESCAPED.search(request.scope.get("raw_path") or b""):
            raise BadPath("a path must not contain an escaped slash, backslash or NUL")
        try:
            image = await parts.server.find(path, params, _accept(request), free=free)
            return await _sent(request, parts.server, image)
        except NoFile as error:
            return await _missing(request, parts.server, params, str(error), free=free)
    except BadPath as error:
        value = InvalidValue(parameter="path", in_="path", detail=str(error))
        raise RefusedRequest(f"invalid path: {error}", [value], _NO_STORE) from error
    except BadParameters as error:
        values = [InvalidValue(parameter=name, in_="query", detail=detail) for name, detail in error.errors]
        raise RefusedRequest(str(error), values, _NO_STORE) from error
    except signing.NotSigned as error:
        raise NotSigned(str(error), headers=_NO_STORE) from error
    except InvalidImage as error:
        raise BrokenPicture(str(error), headers=_NO_STORE) from error
    except Overloaded as error:
        raise Unavailable(str(error), headers={**_NO_STORE, "Retry-After": "2"}) from error


def _accept(request: Request) -> str | None:
    values = request.headers.getlist("accept")
    return ",".join(values) if values else None


def _params(request: Request, parts: ImageParts, path: str) -> tuple[Params, bool]:
    """The parameters, and whether the address is free: neither signed nor a preset."""
    pairs = request.query_params.multi_items()
    proof: dict[str, str] = {}
    for name, value in pairs:
        if name in ("s", "expires"):
            if name in proof:
                raise BadParameters([(name, "is given more than once")])
            proof[name] = value
    params = parse((name, value) for name, value in pairs if name not in proof)
    bare = path.removeprefix(f"{FOLDER}/")
    known = parts.signer.check(bare, params, s=proof.get("s"), expires=proof.get("expires"), now=time.time())
    return params, not known


async def _sent(request: Request, server: ImageServer, image: ServedImage, *, status: int = 200) -> Response:
    headers = {**_SAFE, "ETag": image.etag, "Cache-Control": _IMMUTABLE if image.immutable else _SHORT_LIVED}
    if image.negotiated:
        headers["Vary"] = "Accept"
    if status != 200:
        headers |= _NO_STORE
        del headers["ETag"]
    elif matches(request.headers.get("if-none-match"), image.etag):
        return Response(status_code=304, headers=headers)
    body = await server.data(image)
    return Response(body, status_code=status, headers=headers, media_type=image.media_type)


async def _missing(request: Request, server: ImageServer, params: Params, reason: str, *, free: bool) -> Response:
    if names_images(_accept(request)):
        placeholder = await server.placeholder(params, _accept(request), free=free)
        answer = await _sent(request, server, placeholder, status=404)
    else:
        answer = respond(request, Missing(reason, headers=_NO_STORE))
    # Whether it is an image or a text depends on the header, whatever the format.
    answer.headers["Vary"] = "Accept"
    return answer
