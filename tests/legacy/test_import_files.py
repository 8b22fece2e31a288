"""Former proxies, schedules, payloads with their files, and images: what becomes of them, and of what cannot be taken."""

from __future__ import annotations

import gzip
import json
import logging
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from menuwatch.api.app import AppContext, create_app
from menuwatch.archive import service as archived
from menuwatch.archive.files import FileArchive
from menuwatch.archive.verify import verify
from menuwatch.config.settings import Settings
from menuwatch.core.encryption import SecretBox, is_encrypted, new_key
from menuwatch.db.pool import Pool
from menuwatch.images import service as images
from menuwatch.images.files import ImageFiles
from menuwatch.ops.legacy import importer as taking
from menuwatch.ops.legacy.columns import PAYLOADS, PRODUCTS, PROXIES, SCHEDULES, SNAPSHOTS, STORES
from menuwatch.ops.legacy.payloads import HERE, NO_FOLDER
from menuwatch.ops.legacy.sources import CsvFiles
from menuwatch.ops.legacy.staging import Report
from menuwatch.platforms.dutchie.adapter import Dutchie
from tests.api.shop import item
from tests.images.image_factory import decoded, encoded, halves, plain
from tests.legacy.legacy_database import fingerprint, rows
from tests.legacy.test_import import NOW, STORE_CSV

KEY = new_key()
NAMES = {
    "stores": STORES,
    "products": PRODUCTS,
    "snapshots": SNAPSHOTS,
    "proxies": PROXIES,
    "schedules": SCHEDULES,
    "payloads": PAYLOADS,
}


class Former:
    """A former system: CSV files of its tables and its storage folder; and the new one."""

    def __init__(self, pool: Pool, tmp_path: Path) -> None:
        self.pool = pool
        self.here = tmp_path
        self.storage = tmp_path / "former"
        self.root = tmp_path / "storage"
        self.archive = FileArchive(self.root)
        self.files: dict[str, list[Path]] = {}

    def csv(self, **texts: str) -> None:
        for name, text in texts.items():
            path = self.here / f"{name}.csv"
            path.write_text(text)
            self.files[NAMES[name]] = [path]

    def put(self, path: str, data: bytes) -> bytes:
        place = self.storage / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        return data

    async def take(self, *, dry_run: bool = False, folder: bool = True) -> Report:
        target = taking.Target(
            archive=self.archive,
            secret_box=SecretBox([KEY]),
            image_hosts=("images.dutchie.com",),
            folder=self.storage if folder else None,
        )
        platforms = {"dutchie": Dutchie()}
        return await taking.take(
            self.pool, CsvFiles(self.files), platforms=platforms, target=target, now=NOW, dry_run=dry_run
        )

    async def take_after_trial(self) -> Report:
        """A dry run counts the same and changes nothing; a second run takes nothing more."""
        before = await fingerprint(self.pool)
        trial = await self.take(dry_run=True)
        assert await fingerprint(self.pool) == before
        assert not [place for place in self.root.rglob("*") if place.is_file()]
        done = await self.take()
        assert trial.plain() == {**done.plain(), "dry_run": True}
        after = await fingerprint(self.pool)
        again = await self.take()
        assert [tally.taken for tally in again.tallies.values()] == [0] * len(again.tallies)
        assert await fingerprint(self.pool) == after
        return done


@pytest.fixture
def former(pool: Pool, tmp_path: Path) -> Former:
    return Former(pool, tmp_path)


async def test_proxies(former: Former, caplog: pytest.LogCaptureFixture) -> None:
    former.csv(
        proxies="id,host,port,username,password,protocol,is_active,failure_count,city,state_code,timezone\n"
        "1,203.0.113.1,8080,bob,s3cr3t-one,http,t,2,Phoenix,AZ,America/Phoenix\n"
        "2,203.0.113.2,1080,,,socks5,f,5,,,Nowhere/None\n"
        "3,203.0.113.1,8080,bob,s3cr3t-two,http,t,0,,,\n"
        "4,203.0.113.4,99999,bob,s3cr3t-three,http,t,0,,,\n"
        "5,203.0.113.5,80,bob,,http,t,0,,,\n"
        "6,203.0.113.6,80,,,gopher,t,0,,,\n"
    )
    caplog.set_level(logging.DEBUG)
    done = await former.take_after_trial()
    assert (done.proxies.read, done.proxies.taken) == (6, 2)
    assert sum(done.proxies.skipped.values()) == 4
    assert done.proxies.examples["already exists"] == ["http://bob@203.0.113.1:8080"]
    found = await rows(
        former.pool,
        "SELECT host, protocol, username, is_active, city, state, timezone, password FROM proxies ORDER BY host",
    )
    assert [row[:7] for row in found] == [
        ("203.0.113.1", "http", "bob", True, "Phoenix", "AZ", "America/Phoenix"),
        ("203.0.113.2", "socks5", None, False, None, None, None),
    ]
    assert is_encrypted(found[0][7])
    assert (SecretBox([KEY]).decrypt(found[0][7]), found[1][7]) == ("s3cr3t-one", None)
    audited = str(await rows(former.pool, "SELECT * FROM audit_log"))
    assert "s3cr3t" not in caplog.text + json.dumps(done.plain()) + audited


async def test_schedules(former: Former) -> None:
    async with former.pool.connection() as conn:
        await conn.execute(
            "INSERT INTO task_schedules (name, role, interval_hours, next_run_at) "
            "VALUES ('payload_fetch_all', 'payload_fetch', 4, now())"
        )
    former.csv(
        schedules="id,name,role,enabled,interval_hours,priority,state_code,next_run_at\n"
        "1,payload_fetch_all,product_resync,t,6,0,,\n"
        "2,arizona,product_resync,t,2,5,az,2026-11-22 01:00:00+00\n"
        "3,nightly,analytics_refresh,f,24,0,,2020-01-01 00:00:00+00\n"
        "4,refresh,product_refresh,t,4,0,,\n"
        "5,never,payload_fetch,t,0,0,,\n"
        "6,odd,make_coffee,t,4,0,,\n"
        "7,nowhere,payload_fetch,t,4,0,ZZ9,\n"
    )
    done = await former.take_after_trial()
    assert (done.schedules.read, done.schedules.taken) == (7, 2)
    assert done.schedules.examples["already exists"] == ["payload_fetch_all, interval_hours 6 (here 4)"]
    assert done.schedules.skipped["a schedule cannot have its role: tasks of that role follow from others"] == 1
    assert done.schedules.skipped["interval_hours is not from 0.01 to 8760"] == 1
    assert await rows(
        former.pool,
        "SELECT name, role, enabled, interval_hours::int, priority, state_code, next_run_at FROM task_schedules "
        "WHERE name <> 'payload_fetch_all' ORDER BY name",
    ) == [
        ("arizona", "payload_fetch", True, 2, 5, "AZ", datetime(2026, 11, 22, 1, tzinfo=UTC)),
        ("nightly", "analytics_refresh", False, 24, 0, None, NOW),
    ]


def menu(*products: dict[str, Any]) -> bytes:
    return json.dumps({"data": {"filteredProducts": {"products": products}}}).encode()


PAYLOAD_HEADING = "id,crawl_run_id,dispensary_id,storage_path,product_count,size_bytes,checksum_sha256,fetched_at\n"


def at(hour: int) -> datetime:
    return datetime(2026, 3, 1, hour, tzinfo=UTC)


async def test_payloads(former: Former) -> None:
    """Each form that is known becomes a readable payload; equal menus share a file; the rest is reported, or kept as rejected."""
    one, two = item("p1"), item("p2")
    merged = json.dumps({"dispensaryId": 7, "cName": "green-leaf", "productCount": 2, "products": [one, two]}).encode()
    contents = {
        0: ("/app/storage/payloads/2026/03/01/store_7_0.json.gz", gzip.compress(merged)),
        1: ("payloads/2026/03/01/store_7_1.json", menu(one, two)),
        2: ("storage/payloads/2026/03/01/store_7_2.json.gz", gzip.compress(b"[%b,%b]" % (menu(one), menu(two)))),
        3: ("payloads/2026/03/01/store_7_3.json.gz", gzip.compress(json.dumps([one, two]).encode())),
        4: ("payloads/2026/03/01/store_7_4.json.gz", gzip.compress(json.dumps({"items": [1]}).encode())),
        5: ("payloads/2026/03/01/store_7_5.json.gz", gzip.compress(merged)[:-9]),
        6: ("payloads/2026/03/01/store_7_6.json.gz", gzip.compress(merged)),
        7: ("payloads/2026/03/01/store_7_7.json.gz", gzip.compress(merged)),
        8: ("payloads/2026/03/01/store_7_8.json.gz", gzip.compress(b'{"pages":[%b]}' % menu(one))),
    }
    lines = []
    for hour, (path, data) in contents.items():
        former.put(path[path.index("payloads") :], data)
        checksum = {0: sha256(merged).hexdigest(), 3: sha256(data).hexdigest(), 6: "0" * 64}.get(hour, "")
        lines.append(f"{hour},,7,{path},2,,{checksum},{at(hour).isoformat()}")
    lines += [
        f"20,,7,payloads/2026/03/01/gone.json.gz,2,,,{at(20).isoformat()}",
        f"21,,7,payloads/../../secret.json,2,,,{at(21).isoformat()}",
        "22,,7,payloads/2026/03/01/store_7_1.json,2,,,2027-01-01",
        f"23,,99,payloads/2026/03/01/store_7_1.json,2,,,{at(23).isoformat()}",
        f"24,,7,payloads/2026/03/01/store_7_1.json,2,,,{at(1).isoformat()}",
        f"25,,7,/etc/hostname,2,,,{at(19).isoformat()}",
        f"26,,7,payloads/{'x' * 300}.json,2,,,{at(18).isoformat()}",
    ]
    (former.here / "secret.json").write_bytes(menu(one))
    former.csv(stores=STORE_CSV, payloads=PAYLOAD_HEADING + "\n".join(lines) + "\n")
    done = await former.take_after_trial()
    assert (done.payloads.read, done.payloads.taken) == (16, 6)
    reasons = dict(done.payloads.skipped)
    damaged = [reason for reason in reasons if ": cannot be read: " in reason]
    assert len(damaged) == 1
    assert {reason: count for reason, count in reasons.items() if reason not in damaged} == {
        "its form is not known; kept as a rejected payload": 1,
        "its file cannot be read": 1,
        "its file differs from its checksum": 1,
        "its file is missing": 1,
        "its path leaves the folder": 1,
        "its path is not below payloads/": 1,
        "its time is in the future": 1,
        "its store is not known": 1,
        HERE: 1,
    }
    found = await rows(
        former.pool,
        "SELECT extract(hour FROM fetched_at AT TIME ZONE 'UTC')::int, status, product_count, page_count, applied_at, path, id "
        "FROM raw_crawl_payloads ORDER BY fetched_at",
    )
    assert [row[:5] for row in found] == [
        (0, "ok", 2, 1, None),
        (1, "ok", 2, 1, None),
        (2, "ok", 2, 2, None),
        (3, "ok", 2, 1, None),
        (4, "rejected", 0, 1, None),
        (7, "ok", 2, 1, None),
        (8, "ok", 1, 1, None),
    ]
    # The merged menu of 0, 3 and 7 gives the same page, whose file is stored once.
    assert found[0][5] == found[3][5] == found[5][5] == "payloads/2026/03/01/" + Path(found[0][5]).name
    assert len({row[5] for row in found}) == 5
    assert len([place for place in former.root.rglob("*.json.gz") if place.is_file()]) == 5
    async with former.pool.connection() as conn:
        first = await archived.get_payload(conn, found[0][6])
        ids = [
            Dutchie().identity(raw)
            for page in archived.read(former.archive, first).pages
            for raw in Dutchie().split(page)
        ]
        rejected = archived.read(former.archive, await archived.get_payload(conn, found[4][6]))
    assert ids == ["p1", "p2"]
    assert first.fetched_at == at(0)
    assert rejected.pages == (b'{"items": [1]}',)
    report = await verify(former.pool, former.archive, {"dutchie": Dutchie()})
    assert (report.payloads, report.faults) == (7, ())


async def test_an_interrupted_import_of_payloads(former: Former, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk fails at the second file: the first stays, and the next run takes the rest."""
    path = "payloads/2026/03/01/store_7_{}.json"
    for hour in range(3):
        former.put(path.format(hour), menu(item(f"p{hour}")))
    former.csv(
        stores=STORE_CSV,
        payloads=PAYLOAD_HEADING + "".join(f"{n},,7,{path.format(n)},1,,,{at(n).isoformat()}\n" for n in range(3)),
    )
    blocked = former.root / "payloads" / ".incoming"
    assert (await former.take(folder=False)).payloads.skipped == {NO_FOLDER: 3}
    blocked.parent.mkdir(parents=True)
    blocked.write_text("no folder")
    with pytest.raises(Exception, match="could not be archived"):
        await former.take()
    blocked.unlink()
    done = await former.take()
    assert (done.payloads.taken, done.payloads.skipped) == (3, {})
    assert (await verify(former.pool, former.archive, {"dutchie": Dutchie()})).faults == ()


async def test_a_connection_lost_during_commit_keeps_the_file(former: Former) -> None:
    """Nobody knows whether the row was committed, so its file stays until the next start decides."""
    path = "payloads/2026/03/01/store_7_0.json"
    former.put(path, menu(item("p0")))
    former.csv(stores=STORE_CSV, payloads=PAYLOAD_HEADING + f"0,,7,{path},1,,,{at(0).isoformat()}\n")
    async with former.pool.connection() as conn:
        await conn.execute(
            "CREATE FUNCTION gone() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;"
            "CREATE CONSTRAINT TRIGGER gone AFTER INSERT ON raw_crawl_payloads DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION gone()"
        )
    with pytest.raises(psycopg.OperationalError):
        await former.take()
    assert len(list(former.archive.staged())) == 1


PRODUCT_CSV = """id,dispensary_id,provider_product_id,name_raw,brand_name_raw,last_seen_at,image_url,local_image_path
1,7,5f00000000000000000000aa,Blue Dream,Acme,2026-03-02,https://images.dutchie.com/a.jpg,
2,7,5f00000000000000000000bb,Gummies,Acme,2026-03-02,https://images.dutchie.com/b.jpg,
3,8,5f00000000000000000000aa,Blue Dream,Acme,2026-03-02,https://images.dutchie.com/a.jpg,
4,8,5f00000000000000000000cc,Vape,Acme,2026-03-02,,/storage/images/products/az/other/acme/4/image-0123abcd.webp
5,8,5f00000000000000000000dd,Wax,Acme,2026-03-02,https://elsewhere.example/d.jpg,
"""


async def test_images(former: Former) -> None:
    """They are served under their former paths, are not downloaded again, and equal ones are one image."""
    red, split = encoded(plain(40, 30), ".webp"), encoded(halves(64, 48), ".png")
    paths = {
        "a7": "images/products/az/az-green-leaf/acme/5f00000000000000000000aa/image-0011223344556677.webp",
        "a8": "images/products/az/blue-door/acme/5f00000000000000000000aa/image-0011223344556677.webp",
        "b7": "images/products/az/green-leaf/acme/5f00000000000000000000bb/image-ff.webp",
        "c8": "images/products/az/other/acme/4/image-0123abcd.webp",
        "logo": "images/brands/acme/logo-0123abcd.webp",
    }
    for name, path in paths.items():
        former.put(path, split if name == "b7" else red)
    former.put("images/products/az/green-leaf/acme/5f00000000000000000000ee/image-1.webp", red)
    former.put("images/products/nv/nobody/acme/5f00000000000000000000aa/image-1.webp", red)
    former.put("images/products/az/blue-door/acme/5f00000000000000000000dd/image-1.webp", b"<html>")
    former.put("images/products/az/image-1.webp", red)
    former.put("images/products/az/green leaf/acme/x/image-1.webp", red)
    (former.storage / "images/products/az/link.webp").symlink_to(former.here / "stores.csv")
    former.csv(stores=STORE_CSV, products=PRODUCT_CSV)
    done = await former.take_after_trial()
    assert (done.images.read, done.images.taken) == (10, 5)
    assert done.images.skipped == {
        "its product is not known": 1,
        "no store of that folder is known": 1,
        "its file is not an image": 1,
        "its path is neither that of a product's image nor of a brand's logo": 1,
        "only letters, digits, `-`, `_`, `.` and `/` are allowed, and no component begins with a dot": 1,
    }
    assert await rows(
        former.pool,
        "SELECT d.slug, p.name, local_image_path FROM catalog_products p JOIN dispensaries d ON d.id = p.dispensary_id "
        "ORDER BY p.name, d.slug DESC",
    ) == [
        ("green-leaf", "Blue Dream", paths["a7"]),
        ("blue-door", "Blue Dream", paths["a8"]),
        ("green-leaf", "Gummies", paths["b7"]),
        ("blue-door", "Vape", paths["c8"]),
        ("blue-door", "Wax", None),
    ]
    assert await rows(former.pool, "SELECT brand, path FROM image_references WHERE brand IS NOT NULL") == [
        ("acme", paths["logo"])
    ]
    assert await rows(former.pool, "SELECT width, height, colour <> '' FROM images ORDER BY width") == [
        (40, 30, True),
        (64, 48, True),
    ]
    # Only the product without an image is left to download.
    queued, _ = await images.backfill(former.pool)
    assert queued == 1
    assert await rows(former.pool, "SELECT count(*) FROM image_urls WHERE due_at IS NOT NULL") == [(0,)]
    files = ImageFiles(former.root)
    report = await images.verify(former.pool, files, deep=True, young_seconds=0)
    assert (report.checked, report.is_whole, report.examples) == (5, True, {})
    settings = replace(Settings(), storage_path=former.root)
    app = create_app(
        AppContext(
            pool=former.pool,
            archive=former.archive,
            platforms={"dutchie": Dutchie()},
            settings=settings,
            sites={},
            providers={},
        )
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://menuwatch") as http:
        for path in (paths["a7"], paths["b7"], paths["logo"]):
            for url in (f"/img/{path}", f"/img/{path.removeprefix('images/')}?w=20"):
                answer = await http.get(url)
                assert answer.status_code == 200, (url, answer.text)
        small = decoded((await http.get(f"/img/{paths['a7']}?w=20&format=png")).content)
    assert (small.width, small.height) == (20, 15)


async def test_images_that_are_in_place(former: Former) -> None:
    """The former folder may be the storage folder itself: nothing is copied."""
    former.storage = former.root
    path = "images/products/az/green-leaf/acme/5f00000000000000000000aa/image-0011223344556677.webp"
    data = former.put(path, encoded(plain(40, 30), ".webp"))
    former.csv(stores=STORE_CSV, products=PRODUCT_CSV)
    done = await former.take()
    assert (done.images.taken, (former.storage / path).read_bytes()) == (1, data)
    assert (await images.verify(former.pool, ImageFiles(former.storage), young_seconds=0)).is_whole


async def test_an_image_in_place_that_must_be_converted_keeps_its_file(former: Former) -> None:
    former.storage = former.root
    path = "images/products/az/green-leaf/acme/5f00000000000000000000aa/image-0011223344556677.jpg"
    data = former.put(path, encoded(plain(40, 30), ".jpg"))
    former.csv(stores=STORE_CSV, products=PRODUCT_CSV)
    done = await former.take()
    assert (done.images.taken, (former.storage / path).read_bytes()) == (0, data)
