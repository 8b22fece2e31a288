"""Files that no crawler would write, for `menuwatch replay`: each as its name and what makes it in a folder."""

from __future__ import annotations

import gzip
import json
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from tests.e2e.recordings import page, product

GOOD = page([product(n) for n in range(3)])
_MENU = b'{"data":{"filteredProducts":{"products":[%s],"queryInfo":{"totalCount":%d,"totalPages":1}}}}'

Entry = tuple[tarfile.TarInfo, bytes]
Make = Callable[[], bytes]


def bomb(raw: bytes, times: int) -> bytes:
    """gzip of those bytes so many times over, without ever holding them."""
    packer = zlib.compressobj(1, wbits=31)
    return b"".join(packer.compress(raw) for _ in range(times)) + packer.flush()


def _entry(
    name: str, body: bytes = GOOD, kind: bytes = tarfile.REGTYPE, link: str = "", size: int | None = None
) -> Entry:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, len(body) if size is None else size
    return info, body


def _tar(*entries: Entry) -> bytes:
    """Written by hand: the header may say another size than there is."""
    blocks = []
    for info, body in entries:
        blocks += [info.tobuf(tarfile.PAX_FORMAT), body, b"\0" * (-len(body) % 512)]
    return b"".join(blocks) + b"\0" * 1024


def _value(name: str, text: str) -> bytes:
    """A menu of one product in which that field holds that JSON text."""
    return GOOD.replace(b'"recPrices": [10]', f'"{name}": {text}, "recPrices": [10]'.encode(), 1)


def _few() -> Iterator[tuple[str, Make]]:
    yield "up.tar", lambda: _tar(_entry("../escaped.json"), _entry("../../escaped.json"))
    yield "absolute.tar", lambda: _tar(_entry("/tmp/menuwatch-escaped.json"), _entry("C:\\escaped.json"))
    yield "symlink.tar", lambda: _tar(_entry("a.json", b"", tarfile.SYMTYPE, "/etc/passwd"), _entry("a.json"))
    yield "folder-link.tar", lambda: _tar(_entry("d", b"", tarfile.SYMTYPE, "/tmp"), _entry("d/menuwatch-escaped.json"))
    yield "hardlink.tar", lambda: _tar(_entry("a.json", b"", tarfile.LNKTYPE, "/etc/passwd"))
    yield (
        "devices.tar",
        lambda: _tar(_entry("zero.json", b"", tarfile.CHRTYPE), _entry("pipe.json", b"", tarfile.FIFOTYPE)),
    )
    yield "false-size.tar", lambda: _tar(_entry("a.json", GOOD, size=10**12))
    yield "negative-size.tar", lambda: _tar(_entry("a.json", GOOD, size=-1))
    yield (
        "names.tar",
        lambda: _tar(*(_entry(name, b"x") for name in ("\x1b]0;pwned\x07.json", "a\nb\r.json", "\udcff.json"))),
    )
    yield "many.tar.gz", lambda: gzip.compress(_tar(*(_entry(f"{n}.json", b"{}") for n in range(3000))))
    yield "in-itself.tar", lambda: _tar(_entry("inner.tar", _tar(_entry("a.json"))))
    yield "cut.tar.gz", lambda: gzip.compress(_tar(_entry("a.json")))[:-20]
    yield "deep-array.json", lambda: b"[" * 1_000_000
    yield "deep-object.json", lambda: b'{"data":' * 100_000 + b"1" + b"}" * 100_000
    yield "deep-inside.json", lambda: _value("extra", "[" * 5_000 + "]" * 5_000)
    yield "nan.json", lambda: _value("price", "NaN")
    yield "infinity.json", lambda: GOOD.replace(b"[10]", b"[-Infinity]")
    yield "huge-number.json", lambda: GOOD.replace(b"[10]", b"[1e999999999]")
    yield "long-number.json", lambda: GOOD.replace(b"[10]", b"[" + b"9" * 100_000 + b"]")
    yield "surrogate.json", lambda: GOOD.replace(b"Thing 1", b"\\ud800 \\udfff\\u0000")
    yield "escapes.json", lambda: GOOD.replace(b"Thing 1", b"\\u001b]0;pwned\\u0007\\u001b[2J \\u202e")
    yield "utf-16.json", lambda: GOOD.decode().encode("utf-16")
    yield "latin.json", lambda: GOOD.replace(b"Thing 1", b"\xff\xfe\xc0\x80")
    yield "long-name.json", lambda: GOOD.replace(b"Thing 1", b"x" * 5_000_000)
    yield "long-id.json", lambda: GOOD.replace(b'"p1"', b'"' + b"p" * 100_000 + b'"')
    yield "twice.json", lambda: GOOD.replace(b'"p1"', b'"p0"')
    yield "types.json", lambda: GOOD.replace(b"[10]", b'{"a": [null, true]}').replace(b'"Thing 1"', b"[]")
    yield "page.json", lambda: b"<!doctype html><title>\x1b[2J blocked</title>"
    yield "zeros.json.gz", lambda: bomb(b"\0" * 1_000_000, 1_200)
    yield "twice-packed.json.gz", lambda: gzip.compress(bomb(b"\0" * 1_000_000, 600))
    yield "bomb.tar.gz", lambda: bomb(b"\0" * 1_000_000, 1_000)
    yield "cut.json.gz", lambda: gzip.compress(GOOD)[:-9]
    yield "empty.json", lambda: b""


def _items(text: bytes, count: int) -> bytes:
    """A gzipped menu of so many items, 64 MB of them in some 60 kB."""
    head, tail = (_MENU % (b"@", count)).split(b"@")
    packer = zlib.compressobj(9, wbits=31)
    begun = packer.compress(head) + b"".join(packer.compress(text * 10_000) for _ in range(count // 10_000))
    return begun + packer.compress(text.rstrip(b",") + tail) + packer.flush()


def _many() -> Iterator[tuple[str, Make]]:
    yield "items-2M.json.gz", lambda: _items(b"{},", 2_000_000)
    yield "items-21M.json.gz", lambda: _items(b"{},", 21_000_000)
    yield "numbers-31M.json.gz", lambda: _items(b"1,", 31_000_000)
    yield "lists-12M.json.gz", lambda: _items(b"[[]],", 12_000_000)
    yield "strings-20M.json.gz", lambda: _items(b'"",', 20_000_000)


def _damaged(chance: Random) -> bytes:
    """A good menu with some bytes of it changed."""
    data = bytearray(json.dumps(json.loads(GOOD)).encode())
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(data))
        data[at : at + chance.randint(0, 3)] = chance.choice(
            (b"", b"\0", b'"', b"]", b"}", b"-", b"\\u", b"\xff", b"9" * 400)
        )
    return bytes(data)


def hostile(chance: Callable[[str], Random], damaged: int = 200) -> Iterator[tuple[str, Make]]:
    """(file name, what makes its content) of all of them."""
    yield from _many()
    yield from _few()
    yield "damaged.tar", lambda: _tar(*(_entry(f"{n}.json", _damaged(chance(f"damaged {n}"))) for n in range(damaged)))


def archive_damages(good: Path) -> dict[str, bytes]:
    """What an archive file may have been replaced by."""
    content = good.read_bytes()
    return {
        "a bomb": bomb(b" " * 1_000_000, 1_200),
        "garbage": Random(len(content)).randbytes(5_000),
        "half of it": content[: len(content) // 2],
        "nothing": b"",
        "another document": gzip.compress(b'{"schema": 1}'),
        "deep nesting": gzip.compress(b"[" * 1_000_000),
    }
