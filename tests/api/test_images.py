"""`GET /img/…` as clients, caches and those with bad intentions see it."""

from __future__ import annotations

import asyncio
import base64
import itertools
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from menuwatch.api.app import AppContext, create_app
from menuwatch.archive.files import FileArchive
from menuwatch.config.settings import Settings
from menuwatch.core.errors import Refused
from menuwatch.db.pool import Pool
from menuwatch.images.files import ImageFiles
from menuwatch.images.params import Params
from menuwatch.images.signing import signed
from menuwatch.images.vips import sniff
from tests.images.image_factory import decoded, encoded, halves, noise, png_bomb

STORED = "products/az/green-leaf/brand/17/image-000102030405060708090a0b0c0d0e0f.webp"
URL = f"/img/{STORED}"
CHROME = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"
SECRET = b"nothing outside the root is ever read"

Make = Callable[..., FastAPI]


@pytest.fixture
def make(pool: Pool, tmp_path: Path) -> Make:
    """The app on a storage with one picture, and a secret beside it."""
    storage = tmp_path / "storage"
    ImageFiles(storage).store(f"images/{STORED}", encoded(halves(600, 300), ".webp", Q=95))
    (storage / "secret.webp").write_bytes(SECRET)
    (tmp_path / "secret.webp").write_bytes(SECRET)

    def app(**settings: Any) -> FastAPI:
        found = Settings(storage_path=storage, **settings)
        return create_app(AppContext(pool=pool, archive=FileArchive(storage), platforms={}, settings=found))

    return app


@pytest.fixture
async def http(make: Make) -> AsyncIterator[httpx.AsyncClient]:
    async with client(make()) as found:
        yield found


def client(app: FastAPI) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://menuwatch", headers={"accept": "*/*"})


async def raw(
    app: FastAPI, target: bytes, headers: list[tuple[bytes, bytes]] | None = None
) -> tuple[int, dict[bytes, bytes], bytes]:
    """Asks with exactly these bytes as the path: clients tidy theirs up."""
    from urllib.parse import unquote_to_bytes

    path, _, query = target.partition(b"?")
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(dict(message))

    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http", "root_path": "",
        "path": unquote_to_bytes(path).decode("utf-8", "replace"), "raw_path": path, "query_string": query,
        "headers": headers or [], "client": ("127.0.0.1", 1), "server": ("menuwatch", 80), "state": {},
    }  # fmt: skip
    await app(scope, receive, send)
    return sent[0]["status"], dict(sent[0]["headers"]), b"".join(message.get("body", b"") for message in sent[1:])


async def test_the_stored_picture(http: httpx.AsyncClient, tmp_path: Path) -> None:
    answer = await http.get(URL)
    assert answer.status_code == 200
    assert answer.content == (tmp_path / "storage" / "images" / STORED).read_bytes()
    assert answer.headers["content-type"] == "image/webp"
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["vary"] == "Accept"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert (await http.get(f"/img/images/{STORED}")).content == answer.content, "as local_image_path has it"


async def test_every_parameter(http: httpx.AsyncClient) -> None:
    answer = await http.get(
        URL, params={"w": 100, "h": 80, "q": 40, "fit": "inside", "blur": 1.5, "gray": 1, "format": "jpeg"}
    )
    assert answer.headers["content-type"] == "image/jpeg"
    image = decoded(answer.content)
    assert (image.width, image.height) == (100, 50)
    assert "vary" not in answer.headers, "nobody negotiated"
    for name in ("webp", "jpeg", "png", "avif"):
        answer = await http.get(URL, params={"w": 20, "format": name})
        assert (answer.headers["content-type"], sniff(answer.content)) == (f"image/{name}", name)


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        (CHROME, "avif"),
        ("image/webp,*/*", "webp"),
        ("image/avif;q=0, image/webp;q=0, */*", "jpeg"),
        ("image/png", "png"),
        ("*/*", "webp"),
    ],
)
async def test_negotiation(http: httpx.AsyncClient, accept: str, kind: str) -> None:
    answer = await http.get(URL, params={"w": 30}, headers={"accept": accept})
    assert answer.headers["content-type"] == f"image/{kind}"
    assert answer.headers["vary"] == "Accept"
    again = await http.get(URL, params={"w": 30}, headers={"accept": accept, "if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.headers["vary"], again.content) == (304, "Accept", b"")


async def test_whoever_has_it_gets_304_and_nothing_is_decoded(make: Make) -> None:
    app = make()
    async with client(app) as http:
        first = await http.get(URL, params={"w": 50})
        etag = first.headers["etag"]
        assert etag.startswith('"')
        made = app.state.images.server.transformed
        for given in (etag, f"W/{etag}", f'"x", {etag}', "*"):
            answer = await http.get(URL, params={"w": 50}, headers={"if-none-match": given})
            assert answer.status_code == 304
            assert answer.headers["etag"] == etag
            assert "max-age" in answer.headers["cache-control"]
        assert app.state.images.server.transformed == made == 1
        assert (await http.get(URL, params={"w": 51}, headers={"if-none-match": etag})).status_code == 200
        assert (await http.get(URL, params={"fit": "fill", "w": 50})).headers["etag"] == etag, "it means the same"
    async with client(make(image_cache_mb=0)) as fresh:
        again = await fresh.get(URL, params={"w": 50}, headers={"if-none-match": etag})
        assert again.status_code == 304, "without having made it"


async def test_head(http: httpx.AsyncClient) -> None:
    answer = await http.head(URL, params={"w": 50})
    assert (answer.status_code, answer.content, answer.headers["content-type"]) == (200, b"", "image/webp")
    assert int(answer.headers["content-length"]) > 0


async def test_many_at_once_decode_once(make: Make) -> None:
    app = make()
    async with client(app) as http:
        answers = await asyncio.gather(*(http.get(URL, params={"w": 77, "h": 33}) for _ in range(40)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert app.state.images.server.transformed == 1


@pytest.mark.parametrize(
    ("query", "name", "allowed"),
    [
        ("w=0", "w", "must be a whole number from 1 to 4000"),
        ("h=4001", "h", "must be a whole number from 1 to 4000"),
        ("q=101", "q", "must be a whole number from 1 to 100"),
        ("fit=foo", "fit", "must be one of cover, contain, fill, inside, outside"),
        ("blur=0.1", "blur", "must be a number from 0.3 to 1000"),
        ("gray=yes", "gray", "must be one of 1, 0"),
        ("format=gif", "format", "must be one of webp, jpeg, png, avif"),
        ("width=5", "width", "unknown; the parameters"),
        ("w=5&w=6", "w", "is given more than once"),
        ("s=1&s=2", "s", "is given more than once"),
        ("w=%00", "w", "must be a whole number"),
        ("w=", "w", "must be a whole number"),
    ],
)
async def test_bad_values(http: httpx.AsyncClient, query: str, name: str, allowed: str) -> None:
    answer = await http.get(f"{URL}?{query}")
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["cache-control"] == "no-store"
    (error,) = answer.json()["errors"]
    assert (error["parameter"], error["in"]) == (name, "query")
    assert allowed in error["detail"]


TRICKS = [
    b"/img/", b"/img//", b"/img/..", b"/img/../secret.webp", b"/img/../../secret.webp", b"/img/%2e%2e/secret.webp",
    b"/img/%2e%2e%2fsecret.webp", b"/img/..%2fsecret.webp", b"/img/..%5csecret.webp", b"/img/..\\secret.webp",
    b"/img/products/%2e%2e/%2e%2e/secret.webp", b"/img/products%2f..%2f..%2fsecret.webp", b"/img//etc/passwd",
    b"/img/%2fetc%2fpasswd", b"/img//secret.webp", b"/img/images/../../secret.webp", b"/img/%252e%252e/secret.webp",
    b"/img/secret.webp%00.png", b"/img/%00", b"/img/x%00.webp", b"/img/%c0%ae%c0%ae/secret.webp", b"/img/%ff%fe.webp",
    b"/img/..;/secret.webp", b"/img/.%2e/secret.webp", b"/img/products/az/./x.webp", b"/img/~root/x.webp",
    b"/img/file:///etc/passwd", b"/img/http://127.0.0.1/x.webp", b"/img/" + b"a" * 5000 + b".webp",
    b"/img/" + b"a/" * 3000 + b"x.webp", b"/img/" + b"../" * 50 + b"etc/passwd", b"/img/etc/passwd", b"/img/x.svg",
    b"/img/products/x.webp/", b"/img/.cache/x.webp",
    b"/img/products%2faz%2fgreen-leaf%2fbrand%2f17%2fimage-000102030405060708090a0b0c0d0e0f.webp",
]  # fmt: skip


async def test_path_tricks(make: Make) -> None:
    app = make()
    for target, accept in itertools.product(TRICKS, ([], [(b"accept", CHROME.encode())])):
        status, headers, body = await raw(app, target, accept)
        assert status == 400, (target[:60], body)
        assert headers[b"content-type"] == b"application/problem+json"
        assert headers[b"cache-control"] == b"no-store"
        assert SECRET not in body
        assert b"root:" not in body


async def test_a_line_break_is_no_address_at_all(make: Make) -> None:
    status, headers, _ = await raw(make(), b"/img/x.webp%0d%0aSet-Cookie:a=b")
    assert status == 404
    assert not any(b"cookie" in name for name in headers)


async def test_links_lead_nowhere(http: httpx.AsyncClient, tmp_path: Path) -> None:
    folder = tmp_path / "storage" / "images" / "products"
    (folder / "link.webp").symlink_to(tmp_path / "secret.webp")
    (folder / "out").symlink_to(tmp_path)
    for path in ("products/link.webp", "products/out/secret.webp"):
        answer = await http.get(f"/img/{path}")
        assert answer.status_code == 404
        assert SECRET not in answer.content


async def test_what_is_missing(http: httpx.AsyncClient) -> None:
    missing = "/img/products/az/x/y/1/image-ffffffffffffffffffffffffffffffff.webp"
    answer = await http.get(missing)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
    assert (answer.headers["cache-control"], answer.headers["vary"]) == ("no-store", "Accept")
    shown = await http.get(missing, params={"w": 120, "h": 90}, headers={"accept": CHROME})
    assert (shown.status_code, shown.headers["content-type"]) == (404, "image/avif")
    assert (shown.headers["cache-control"], shown.headers["vary"]) == ("no-store", "Accept")
    assert "etag" not in shown.headers
    assert (decoded(shown.content).width, decoded(shown.content).height) == (120, 90)
    placeholder = await http.get("/img/placeholder", params={"w": 60})
    assert (placeholder.status_code, placeholder.headers["content-type"]) == (200, "image/webp")
    assert decoded(placeholder.content).width == 60


async def test_files_that_cannot_be_shown(http: httpx.AsyncClient, tmp_path: Path) -> None:
    folder = tmp_path / "storage" / "images"
    (folder / "bomb.png").write_bytes(png_bomb())
    (folder / "page.jpg").write_bytes(b"<html><script>alert(1)</script></html>")
    (folder / "drawing.png").write_bytes(b"<svg xmlns='http://www.w3.org/2000/svg'/>")
    (folder / "cut.jpg").write_bytes(encoded(noise(300, 300), ".jpg")[:5000])
    started = time.monotonic()
    for name, said in (
        ("bomb.png", "900 million"),
        ("page.jpg", "web page"),
        ("drawing.png", "SVG"),
        ("cut.jpg", "decoded"),
    ):
        answer = await http.get(f"/img/{name}", params={"w": 10})
        assert (answer.status_code, answer.headers["cache-control"]) == (422, "no-store"), name
        assert said in answer.json()["detail"]
        assert (await http.get(f"/img/{name}")).status_code == 422, "nor as it is"
    assert time.monotonic() - started < 5


async def test_a_name_without_a_hash_may_change(http: httpx.AsyncClient, tmp_path: Path) -> None:
    place = tmp_path / "storage" / "images" / "banner.png"
    place.write_bytes(encoded(halves(40, 40), ".png"))
    first = await http.get("/img/banner.png", params={"w": 10})
    assert first.headers["cache-control"] == "public, max-age=300"
    place.write_bytes(encoded(noise(40, 40), ".png"))
    second = await http.get("/img/banner.png", params={"w": 10}, headers={"if-none-match": first.headers["etag"]})
    assert second.status_code == 200
    assert second.content != first.content


async def test_a_result_that_would_be_too_large(http: httpx.AsyncClient, tmp_path: Path) -> None:
    (tmp_path / "storage" / "images" / "thin.png").write_bytes(encoded(noise(4, 4000), ".png"))
    answer = await http.get("/img/thin.png", params={"w": 4000})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["parameter"] == "w"


def secret(fill: str) -> str:
    return base64.urlsafe_b64encode(bytes(range(ord(fill), ord(fill) + 32))).decode()


async def test_without_a_key_a_stranger_gets_what_costs_little(make: Make, tmp_path: Path) -> None:
    folder = tmp_path / "storage" / "images"
    (folder / "large.png").write_bytes(encoded(noise(3000, 3000), ".png", compression=1))
    (folder / "small.png").write_bytes(encoded(noise(1100, 1100), ".png", compression=1))
    key = base64.urlsafe_b64encode(bytes(32)).decode()
    async with client(make()) as http, client(make(image_url_key=(key,))) as with_key:
        for path, query in (
            ("placeholder", "w=3998&h=3997&format=png"),
            ("placeholder", "w=1001"),
            ("missing.webp", "w=3998"),
            ("small.png", "w=1001&h=1001&fit=fill&format=avif&blur=900"),
            ("small.png", "w=4000&h=1&fit=outside"),
            ("large.png", "w=10"),
        ):
            answer = await http.get(f"/img/{path}?{query}", headers={"accept": CHROME})
            assert (answer.status_code, answer.headers["cache-control"]) == (403, "no-store"), query
            assert "IMAGE_URL_KEY" in answer.json()["detail"]
        for width in (100, 200, 400, 800, 1600):
            assert (await http.get(f"/img/large.png?w={width}")).status_code == 200, "the pages' own sizes"
        assert (await http.get("/img/small.png?w=1000&h=1000&format=avif")).status_code == 200
        assert (await http.get("/img/placeholder?w=1000&h=1000")).status_code == 200
        assert (await with_key.get(signed(key, "small.png", Params(w=1050)))).status_code == 200


async def test_sizes_of_strangers_push_out_each_other_and_not_the_pages_pictures(make: Make, tmp_path: Path) -> None:
    (tmp_path / "storage" / "images" / "noise.png").write_bytes(encoded(noise(400, 400), ".png", compression=1))
    app = make(image_cache_mb=1, image_presets=("w=100",))
    pictures = app.state.images.server
    async with client(app) as http:
        await http.get("/img/noise.png?w=100")
        for width in range(180, 200):
            assert (await http.get(f"/img/noise.png?w={width}&q=100")).status_code == 200
        made = pictures.transformed
        await http.get("/img/noise.png?w=100")
        await http.get("/img/noise.png?w=199&q=100")
        assert pictures.transformed == made, "both were kept"
        await http.get("/img/noise.png?w=180&q=100")
        assert pictures.transformed == made + 1, "the oldest of the others made room"
    used = sum(file.stat().st_size for file in (tmp_path / "storage" / "cache").rglob("*") if file.is_file())
    assert used <= 1_000_000


OLD, NEW = secret("A"), secret("a")


async def test_signed_addresses(make: Make) -> None:
    app = make(image_url_key=(NEW, OLD), image_presets=("w=200", "h=90&w=90"))
    wanted = Params(w=123, blur=2.0)
    later = int(time.time()) + 1000
    async with client(app) as http:

        async def status(url: str) -> int:
            return (await http.get(url)).status_code

        assert await status(URL) == 200, "as it is stored"
        assert (
            await status(f"{URL}?w=200")
            == await status(f"{URL}?w=90&h=90")
            == await status("/img/placeholder?w=200")
            == 200
        )
        for query in ("w=201", "w=200&q=50", "w=200&format=avif", "w=200&s=", "w=200&expires=99999999999"):
            answer = await http.get(f"{URL}?{query}")
            assert (answer.status_code, answer.headers["cache-control"]) == (403, "no-store"), query
        good = signed(NEW, STORED, wanted)
        assert await status(good) == 200
        assert await status(signed(OLD, STORED, wanted)) == 200, "the key before still counts"
        assert await status(signed(secret("!"), STORED, wanted)) == 403
        assert await status(good.replace("w=123", "w=124")) == 403
        assert await status(good.replace("blur=2", "blur=2.0")) == 200, "it means the same"
        assert await status(good.replace("/17/", "/18/")) == 403
        assert await status(good[:-1]) == 403
        assert await status(good + "&expires=99999999999") == 403
        assert await status(good.replace("/img/", "/img/images/")) == 200
        assert await status(signed(NEW, STORED, wanted, later)) == 200
        assert await status(signed(NEW, STORED, wanted, later).replace(str(later), str(later + 1))) == 403
        expired = await http.get(signed(NEW, STORED, wanted, 1000))
        assert (expired.status_code, "expired" in expired.json()["detail"]) == (403, True)
        assert await status(signed(NEW, STORED, wanted).replace("s=", "s=%C3%A9")) == 403
        # What means nothing is said before who may ask.
        assert await status(f"{URL}?w=0") == 400
    for text in (NEW, OLD):
        assert text not in repr(Settings(image_url_key=(NEW, OLD)))


def test_a_preset_that_means_nothing_is_refused_at_the_start(make: Make) -> None:
    with pytest.raises(Refused, match=r"IMAGE_PRESETS: invalid entry 'w=0': w: must be"):
        make(image_presets=("w=0",))


async def test_the_loop_goes_on_while_pictures_are_made(make: Make, tmp_path: Path) -> None:
    (tmp_path / "storage" / "images" / "large.png").write_bytes(encoded(noise(2000, 2000), ".png", compression=1))
    late = 0.0

    async def watch() -> None:
        nonlocal late
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.005)
            late = max(late, time.monotonic() - before)

    async with client(make()) as http:
        await http.get(f"{URL}?w=5")
        watching = asyncio.create_task(watch())
        assert (await http.get("/img/large.png", params={"w": 1000, "q": 100, "format": "webp"})).status_code == 200
        watching.cancel()
    assert late < 0.3
