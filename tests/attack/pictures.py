"""Mutated pictures through the picture code, in a process of its own: `python -m tests.attack.pictures SEED SECONDS MOST ONLY`.

It prints a line of JSON for each picture that ends in anything but a stored picture or the documented error, the name of each case
before it (so that the parent knows which one killed it) on standard error, and at the end the number of cases."""

from __future__ import annotations

import json
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from random import Random

from menuwatch.images import vips
from menuwatch.images.transform import make_original
from tests.images.image_factory import chunk, encoded, gif_bomb, noise, png_bomb, png_of

FORMATS = {
    "avif": (".avif", {"Q": 40, "effort": 0}),
    "png": (".png", {}),
    "jpeg": (".jpg", {"Q": 60}),
    "webp": (".webp", {"Q": 50}),
    "gif": (".gif", {}),
}


def sources() -> dict[str, bytes]:
    """A small picture of each format, with the metadata that cameras write."""
    image = noise(48, 40).copy()
    image.set_type(vips.lib().GValue.blob_type, "exif-data", b"Exif\0\0MM\0*\0\0\0\x08" + b"\0" * 60)
    image.set_type(vips.lib().GValue.blob_type, "xmp-data", b"<x:xmpmeta xmlns:x='adobe:ns:meta/'/>")
    return {kind: encoded(image, suffix, **options) for kind, (suffix, options) in FORMATS.items()}


def made(source: dict[str, bytes]) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """ImageServer made by hand, each against one weakness."""
    yield "name-is-no-text.avif", lambda: source["avif"].replace(b"Exif\0", b"E\xffif\0").replace(b"infe", b"infe")
    yield "49000000x1.png", lambda: png_of(49_000_000, 1, zlib.compress(b"\0" * 147_000_001, 9))
    yield "1x49000000.png", lambda: png_of(1, 49_000_000, zlib.compress(b"\0" * 49_000_000, 9), colour=0)
    yield "30000x30000.png", png_bomb
    yield "7000x7000.png", lambda: png_of(7000, 7000, zlib.compress(b"\0" * (7000 * 28_001), 9), colour=6)
    yield "frames.gif", lambda: gif_bomb(5000, 5000, 3000)
    yield "text-bomb.png", lambda: _with_text(source["png"])


def _with_text(png: bytes) -> bytes:
    text = b"Comment\0\0" + zlib.compress(b"\0" * 100_000_000, 9)
    return png[:33] + chunk(b"zTXt", text) + png[33:]


def mutated(source: bytes, chance: Random) -> bytes:
    """Some bytes changed, more of them near the beginning, where the structure is; sometimes pieces moved, doubled or cut off."""
    data = bytearray(source)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        near = chance.random() < 0.7
        at = chance.randrange(min(len(data), 600) if near else len(data))
        match chance.randrange(6):
            case 0:
                data[at] ^= 1 << chance.randrange(8)
            case 1:
                data[at] = chance.choice((0, 0x7F, 0x80, 0xFF))
            case 2:
                data[at : at + 4] = chance.choice(
                    (b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\x40\0")
                )
            case 3:
                data[at:at] = data[at : at + chance.randrange(1, 64)]
            case 4:
                del data[at : at + chance.randrange(1, 16)]
            case _:
                data[at] = chance.randrange(256)
    return bytes(data[: chance.randrange(20, len(data))] if chance.random() < 0.05 else data)


def _try(name: str, data: bytes) -> bool:
    """Whether it was a picture."""
    print(name, file=sys.stderr, flush=True)
    try:
        return bool(make_original(data).width)
    except vips.InvalidImage as error:
        wrong = "" if "\n" not in str(error) and len(str(error)) < 500 else f"a message of {len(str(error))} characters"
    except Exception as error:
        wrong = f"{type(error).__name__}: {error}"[:300]
    if wrong:
        print(json.dumps({"case": name, "wrong": wrong, "bytes": len(data), "hex": data[:200].hex()}), flush=True)
    return False


def main(seed: str, seconds: str, most: str, only: str) -> None:
    source = sources()
    deadline, cases, good = time.monotonic() + float(seconds), 0, 0
    for name, make in made(source):
        if f"picture {name}" == only:
            cases += 1
            good += _try(f"picture {name}", make())
    for n in range(int(most)):
        for kind, data in source.items():
            name = f"picture {kind} #{n}"
            if time.monotonic() < deadline and (only in name or not only):
                cases += 1
                good += _try(name, mutated(data, Random(f"{seed} {name}")))
    print(json.dumps({"cases": cases, "good": good}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
