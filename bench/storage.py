"""Payloads on S3: what writing and reading one costs, against bare obstore with the same bytes.

    .venv/bin/python bench/storage.py [--payloads 200]

Both sides use the same server (`rclone serve s3` on the loopback), in alternating rounds; medians of five. Two comparisons: the whole
payload (both sides pack, hash, write, read, unpack and hash), and the requests alone (packed bytes are written, published and read).
"""

from __future__ import annotations

import argparse
import hashlib
import random
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import obstore
from obstore.store import S3Store

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.storage.server import BUCKET, KEY, SECRET, S3Server, running

from menuwatch.archive import document
from menuwatch.archive import gzip as packing
from menuwatch.archive.document import Document
from menuwatch.archive.files import LARGEST, LEVEL, FileArchive

ROUNDS = 5
LIMIT = 1.5


def documents(count: int) -> list[Document]:
    """Menus of 2,000 products, about 2 MB each."""
    rng = random.Random(7)
    found = []
    for number in range(count):
        items = [
            {"id": f"{rng.getrandbits(96):024x}", "Name": f"Flower {rng.randint(1, 9999)}", "Prices": [rng.randint(5, 90)],
             "brandId": f"{rng.getrandbits(96):024x}", "THC": rng.random(), "text": f"{rng.getrandbits(256):x} " + "hand trimmed" * 50}
            for _ in range(2_000)
        ]  # fmt: skip
        page = msgspec.json.encode({"data": {"filteredProducts": {"products": items}}})
        at = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(minutes=number)
        found.append(Document(platform="dutchie", platform_dispensary_id="x", fetched_at=at, pages=(page,)))
    return found


def connect(server: S3Server) -> S3Store:
    return S3Store(
        BUCKET, endpoint=server.endpoint, access_key_id=KEY, secret_access_key=SECRET, region="us-east-1",
        client_options={"allow_http": True},
    )  # fmt: skip


def pack(doc: Document) -> tuple[bytes, str]:
    composed = document.compose(doc)
    packer, digest = packing.packer(LEVEL), hashlib.sha256()
    packed = []
    for piece in (*composed.answers, composed.about):
        digest.update(piece)
        packed.append(packer.compress(piece))
    return b"".join((*packed, packer.flush())), digest.hexdigest()


def bare(server: S3Server, docs: list[Document], folder: str) -> float:
    """Seconds per payload, with obstore alone."""
    store = connect(server)
    hashes = []
    began = time.perf_counter()
    for number, doc in enumerate(docs):
        data, digest = pack(doc)
        hashes.append(digest)
        obstore.put(store, f"{folder}/{number}", data, use_multipart=False)
    for number, digest in enumerate(hashes):
        data = packing.unpack(bytes(obstore.get(store, f"{folder}/{number}").bytes()), LARGEST)
        assert hashlib.sha256(data).hexdigest() == digest
        document.decode(data)
    return (time.perf_counter() - began) / len(docs)


def archived(server: S3Server, docs: list[Document], store_id: int) -> float:
    """The same through the archive."""
    archive = FileArchive(server.storage())
    staged = []
    began = time.perf_counter()
    for doc in docs:
        staged.append(archive.stage(store_id, doc))
        archive.publish(staged[-1])
    for one in staged:
        archive.read(one.path, one.sha256, one.raw_size)
    return (time.perf_counter() - began) / len(docs)


def bare_requests(server: S3Server, packed: list[bytes], folder: str) -> float:
    """Seconds per object for PUT and GET."""
    store = connect(server)
    began = time.perf_counter()
    for number, data in enumerate(packed):
        obstore.put(store, f"{folder}/{number}", data, use_multipart=False)
    for number in range(len(packed)):
        bytes(obstore.get(store, f"{folder}/{number}").bytes())
    return (time.perf_counter() - began) / len(packed)


def requests(server: S3Server, packed: list[bytes], folder: str) -> float:
    """The same through the storage driver: staged, published and read."""
    storage = server.storage()
    began = time.perf_counter()
    for number, data in enumerate(packed):
        storage.publish(storage.stage(f"payloads/{folder}/{number}", data))
    for number in range(len(packed)):
        storage.get(f"payloads/{folder}/{number}", LARGEST)
    return (time.perf_counter() - began) / len(packed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--payloads", type=int, default=100)
    docs = documents(parser.parse_args().payloads)
    packed = [pack(doc)[0] for doc in docs]
    sizes = [statistics.mean(map(len, each)) for each in ([doc.pages[0] for doc in docs], packed)]
    print(f"{len(docs)} payloads of {sizes[0]:,.0f} bytes, {sizes[1]:,.0f} packed")
    rounds: dict[str, list[float]] = {name: [] for name in ("bare obstore", "archive", "PUT and GET", "driver")}
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as server:
        for number in range(ROUNDS):
            rounds["bare obstore"].append(bare(server, docs, f"bare-{number}"))
            rounds["archive"].append(archived(server, docs, number + 1))
            rounds["PUT and GET"].append(bare_requests(server, packed, f"put-{number}"))
            rounds["driver"].append(requests(server, packed, f"staged-{number}"))
    medians = {name: statistics.median(times) * 1e3 for name, times in rounds.items()}
    for name, milliseconds in medians.items():
        print(f"{name:14} {milliseconds:6.2f} ms per payload")
    ratios = (medians["archive"] / medians["bare obstore"], medians["driver"] / medians["PUT and GET"])
    print(
        f"ratio {ratios[0]:.2f} for a payload, {ratios[1]:.2f} for its requests alone (target for a payload: at most {LIMIT})"
    )
    raise SystemExit(ratios[0] > LIMIT)


if __name__ == "__main__":
    main()
