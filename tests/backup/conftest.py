"""A small installation with everything in it that a backup may stumble over, and places to restore into."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from tests.conftest import create_database, drop_database, in_memory

_serial = itertools.count()


@dataclass(frozen=True)
class Place:
    """Where an installation lies."""

    url: str
    storage: Path

    @property
    def env(self) -> dict[str, str]:
        ours = {"DATABASE_URL": self.url, "STORAGE_PATH": str(self.storage), "MENUWATCH_HOME": str(self.storage.parent)}
        return {**os.environ, **ours}


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="menuwatch-backup-", dir=in_memory()) as made:
        yield Path(made)


@pytest.fixture
def nowhere(server_url: str, folder: Path) -> Iterator[Callable[[], Place]]:
    """Makes empty places."""
    made: list[str] = []

    def make() -> Place:
        name = f"restored_{os.getpid()}_{next(_serial)}"
        made.append(name)
        return Place(create_database(server_url, name), folder / name)

    yield make
    for name in made:
        drop_database(server_url, name)


_WORDS = "a\ttab, a\nline, a\\backslash, \\N, ünïcödé, '; DROP TABLE x; --"


def add_payload(place: Place, number: int, path: str, content: bytes, *, file: str | None = None) -> None:
    """A row of the archive, and its file."""
    where = place.storage / (file or path)
    where.parent.mkdir(parents=True, exist_ok=True)
    where.write_bytes(content)
    with psycopg.connect(place.url, autocommit=True) as conn:
        conn.execute(
            "INSERT INTO raw_crawl_payloads (dispensary_id, platform, status, fetched_at, path, bytes, raw_bytes, "
            "sha256, content_sha256) "
            "VALUES ((SELECT min(id) FROM dispensaries), 'dutchie', 'ok', now() + make_interval(secs => %s), %s, %s, 1, 'x', 'y')",
            [number, path, len(content)],
        )


@pytest.fixture
def small(database_url: str, folder: Path) -> Place:
    """Rows of every shape, parts of the past, files of every kind."""
    place = Place(database_url, folder / "storage")
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute(
            "INSERT INTO dispensaries (name, name_raw, latitude, longitude, crawl_interval_hours, created_at) VALUES "
            "(%s, '', 0.1::float8 + 0.2::float8, '-0', 4.10, 'infinity'), "
            "('b', 'b', NULL, NULL, 0.000001, '1999-01-01 00:00:00.000001+05')",
            [_WORDS],
        )
        conn.execute(
            "SELECT ensure_product_history_partition('2024-03-05'), ensure_task_history_partition('2025-02-01')"
        )
        conn.execute("INSERT INTO app_secrets (name, value) VALUES ('login_failures', sha256('k'))")
        conn.execute("INSERT INTO visitor_salts (day, salt) VALUES (current_date, sha256('s'))")
        conn.execute(
            "INSERT INTO task_history (id, created_at, scheduled_for, completed_at, role, status, priority, max_retries, retry_count, "
            "attempt, postpone_count, platform, payload, error_message) VALUES "
            "(1, '2025-02-01', '2025-02-01', '2025-02-01', 'store_discovery', 'failed', 1, 1, 1, 1, 0, 'dutchie', '{}', 'HTTP 403')"
        )
        conn.execute("SELECT nextval('task_ids') FROM generate_series(1, 7)")
        conn.execute("UPDATE app_secrets SET value = 'of this installation' WHERE name = 'crawl_webhooks'")
        conn.execute("CREATE TABLE somebody_elses (n integer)")
    for number in range(12):
        add_payload(
            place, number, f"payloads/2026/01/0{number % 3 + 1}/store_{number}.json.gz", b"menu %d" % (number % 9)
        )
    pack = place.storage / "history" / "month=2024-03"
    pack.mkdir(parents=True)
    (pack / "states-1.parquet").write_bytes(b"PAR1 states PAR1")
    (pack / "states-2.parquet").write_bytes(b"PAR1 half of o")
    picture = place.storage / "images" / "products" / "az" / "image-1.webp"
    picture.parent.mkdir(parents=True)
    picture.write_bytes(b"picture")
    os.link(picture, picture.with_name("image-2.webp"))
    with psycopg.connect(database_url, autocommit=True) as conn:
        for name in ("image-1.webp", "image-2.webp"):
            conn.execute(
                "INSERT INTO images (sha256, path, source_format, width, height, bytes, source_bytes, colour) "
                "VALUES (sha256(%s::bytea), %s, 'png', 1, 1, 7, 7, '#000000')",
                [name.encode(), f"images/products/az/{name}"],
            )
    cached = place.storage / "cache" / "images" / "x.webp"
    cached.parent.mkdir(parents=True)
    cached.write_bytes(b"made again")
    return place
