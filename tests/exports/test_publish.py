"""A published dataset: equal to the database row for row, and readable whatever happens while it is written."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from menuwatch.catalog import packing
from menuwatch.catalog.cold_storage import ParquetPartitions
from menuwatch.core.errors import Refused
from menuwatch.exports.dataset import DATASET
from menuwatch.matching.engine import match_all
from menuwatch.ops import publish as publishing
from menuwatch.ops.publish import Destination, Published
from tests.api.shop import START, Shop
from tests.commands import menuwatch
from tests.exports.dataset_reader import HISTORY, Dataset, history_of, lake, market, normal
from tests.storage.server import BUCKET, S3Server, running

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
EVERY = 1 if "ALL_WRITES" in os.environ else 7
"""Of the writes of a publish, so many apart are those at which it is killed, and the last two: `make proofs` takes every one."""
KILLED = """
import atexit, os, signal, sys
from menuwatch.storage.local import LocalStorage
count, at, before = 0, int(sys.argv[1]), sys.argv[2] == "before"
write, put, remove = LocalStorage._write, LocalStorage.put, LocalStorage.remove
def die(): os.kill(os.getpid(), signal.SIGKILL)
def counted(self, target, data):
    global count
    count += 1
    write(self, target, data)
    if before and count == at: die()
def whole(self, path, data):
    put(self, path, data)
    if not before and count == at: die()
def removed(self, path):
    remove(self, path)
    if at == 0: die()
LocalStorage._write, LocalStorage.put, LocalStorage.remove = counted, whole, removed
atexit.register(lambda: print("writes:", count))
sys.argv[1:] = sys.argv[3:]
from menuwatch.cli.main import main
main()
"""


async def _publish(shop: Shop, destination: Destination | Path, **more: Any) -> Published:
    if isinstance(destination, Path):
        destination = publishing.open_destination(str(destination), None)
    given = {"title": "Menus", "licence": None, "keep_versions": 2, "now": NOW} | more
    async with shop.pool.connection() as conn:
        return await publishing.publish(conn, ParquetPartitions(shop.archive.storage), destination, **given)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with running(tmp_path_factory.mktemp("s3")) as found:
        yield found


@pytest.fixture(params=["local", "s3"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Destination, Path]:
    """Where to publish, and where its files can be read."""
    if request.param == "local":
        return publishing.open_destination(str(tmp_path / "dataset"), None), tmp_path / "dataset"
    server: S3Server = request.getfixturevalue("server")
    found = Destination(
        name="s3://menus/one/two", storage=server.storage(), data_path="s3://menus/one/two/", folder=None
    )
    return found, server.data / BUCKET / "one/two"


async def _pack(shop: Shop, month: int) -> int:
    before = START.replace(month=month, day=1, hour=0)
    async with shop.pool.connection() as conn:
        done = await packing.pack(conn, ParquetPartitions(shop.archive.storage), before, now=NOW)
    return sum(one.states for one in done)


async def _equal_to_the_views(shop: Shop, dataset: Dataset) -> None:
    """All tables but the history, column by column."""
    columns = {table.name: [column.name for column in table.columns if column.name != "month"] for table in DATASET}
    for table in DATASET:
        if table.name == "price_history":
            continue
        names = ", ".join(columns[table.name])
        async with shop.pool.connection() as conn:
            cursor = await conn.execute(f"SELECT {names} FROM analyst.{table.view}")
            assert normal(dataset.rows(table.name, names)) == normal(await cursor.fetchall()), table.name


async def test_it_equals_the_database_before_and_after_history_is_packed(
    shop: Shop, target: tuple[Destination, Path], tmp_path: Path
) -> None:
    destination, root = target
    await market(shop)
    await match_all(shop.pool)
    async with shop.pool.connection() as conn:
        expected = await history_of(conn)
    assert len(expected) > 300
    first = await _publish(shop, destination)
    assert (first.version, first.changed, first.rows["price_history"]) == (1, True, len(expected))
    dataset = Dataset(root)
    dataset.check()
    assert normal(dataset.rows("price_history", HISTORY)) == expected
    await _equal_to_the_views(shop, dataset)
    assert {path.split("/")[2] for path in dataset.files("price_history")} == {"AZ", "NM", "unknown"}
    counted = {name: len(dataset.rows(name)) for name in first.rows}
    assert counted == first.rows
    assert min(counted[name] for name in ("changes", "menus", "products", "canonical_products", "brands")) > 0

    assert await _pack(shop, 6) > 50
    again = await _publish(shop, destination)
    assert (again.version, again.changed, again.written) == (1, False, 0), "where a row is stored makes no difference"
    await shop.execute("UPDATE dispensaries SET city = 'Tucson' WHERE state = 'AZ'")
    second = await _publish(shop, destination)
    assert (second.version, second.written) == (2, 1)
    assert normal(Dataset(root).rows("price_history", HISTORY)) == expected
    with lake(root) as db:
        assert normal(db.execute(f"SELECT {HISTORY} FROM lake.price_history").fetchall()) == expected
        for table in DATASET:
            names = ", ".join(column.name for column in table.columns)
            found = db.execute(f"SELECT {names} FROM lake.{table.name}").fetchall()
            assert normal(found) == normal(Dataset(root).rows(table.name, names)), table.name
        assert ("Tucson",) in db.execute("SELECT city FROM lake.stores WHERE state = 'AZ'").fetchall()


async def test_only_files_that_changed_are_written(shop: Shop, tmp_path: Path) -> None:
    await market(shop, range(6))
    await _publish(shop, tmp_path / "one")
    before = Dataset(tmp_path / "one")
    times = {path: (before.root / path).stat().st_mtime_ns for paths in before.everything().values() for path in paths}
    await market(shop, range(6, 8))
    done = await _publish(shop, tmp_path / "one")
    after = Dataset(tmp_path / "one")
    after.check()
    kept = [path for paths in after.everything().values() for path in paths if path in times]
    assert any("changes/AZ/2026-04" in path for path in kept)
    assert done.written == done.files - len(kept) > 0
    assert all((after.root / path).stat().st_mtime_ns == times[path] for path in kept)
    await _publish(shop, tmp_path / "complete")
    assert Dataset(tmp_path / "complete").everything() == after.everything(), "in parts or at once: the same files"
    before.check()


async def test_files_of_old_versions_are_removed(shop: Shop, tmp_path: Path) -> None:
    root = tmp_path / "dataset"
    versions = []
    for crawl in range(4):
        await market(shop, range(crawl, crawl + 1))
        await _publish(shop, root)
        (root / "data/prices").mkdir(exist_ok=True)
        (root / "data/prices/mine.parquet").touch()
        versions.append(Dataset(root))
    assert sorted(entry.name for entry in (root / "versions").iterdir() if any(entry.iterdir())) == ["3", "4"]
    versions[2].check()
    versions[3].check()
    kept = {path for one in versions[2:] for paths in one.everything().values() for path in paths}
    assert {str(file.relative_to(root)) for file in (root / "data").rglob("*-*.parquet")} == kept
    assert not (root / versions[0].files("menus")[0]).exists()
    assert (root / "data/prices/mine.parquet").exists(), "what is not of the dataset is left alone"
    await _publish(shop, root, keep_versions=1, title="Other")
    assert Dataset(root).package["menuwatch"]["versions"] == [5]


async def test_readers_never_see_a_version_in_part(shop: Shop, tmp_path: Path) -> None:
    root = tmp_path / "dataset"
    await market(shop, range(1))
    published = {1: (await _publish(shop, root)).rows["price_history"]}
    stop = threading.Event()
    seen: list[tuple[int, int]] = []
    listed: list[int] = []

    def read() -> None:
        while not stop.is_set():
            dataset = Dataset(root)
            seen.append((dataset.version, len(dataset.rows("price_history"))))
            with lake(root) as db:
                listed.append(db.execute("SELECT count(*) FROM lake.price_history").fetchall()[0][0])

    reader = asyncio.create_task(asyncio.to_thread(read))
    try:
        for crawl in range(1, 4):
            await market(shop, range(crawl, crawl + 1))
            done = await _publish(shop, root)
            published[done.version] = done.rows["price_history"]
    finally:
        stop.set()
        await reader
    assert len(set(published.values())) == 4
    assert {published[version] == count for version, count in seen} == {True}
    assert set(listed) <= set(published.values())
    assert len({version for version, _ in seen}) > 1, "versions changed while they were read"


@pytest.mark.timeout(600)
async def test_a_kill_at_any_write_leaves_the_last_version(shop: Shop, tmp_path: Path, database_url: str) -> None:
    first = tmp_path / "first"
    env = {
        **os.environ, "DATABASE_URL": database_url, "MENUWATCH_HOME": str(tmp_path), "STORAGE_PATH": str(shop.storage),
    }  # fmt: skip
    env["TMPDIR"] = str(tmp_path)  # what a killed publish leaves there
    await market(shop, range(2))
    rows = (await _publish(shop, first)).rows["price_history"]
    await market(shop, range(2, 3))
    changed = (await _publish(shop, tmp_path / "other")).rows["price_history"]
    assert changed != rows

    def run(root: Path, point: int, when: str, *more: str) -> tuple[int, str]:
        words = [sys.executable, "-c", KILLED, str(point), when, "publish", str(root), *more]
        done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, done.stdout

    def read(root: Path) -> tuple[int, int, int]:
        dataset = Dataset(root)
        dataset.check()
        with lake(root) as db:
            listed = db.execute("SELECT count(*) FROM lake.price_history").fetchall()[0][0]
        return dataset.version, len(dataset.rows("price_history")), listed

    whole = shutil.copytree(first, tmp_path / "whole")
    code, said = await asyncio.to_thread(run, whole, -1, "")
    assert (code, read(whole)) == (0, (2, changed, changed))
    writes = int(said.rpartition("writes: ")[2])
    assert writes > 15
    points = [
        *((point, ("before", "after")[point // EVERY % 2]) for point in range(1, writes - 1, EVERY)),
        *((point, when) for point in (writes - 1, writes) for when in ("before", "after")),
    ]
    killed: list[Path] = []
    versions: list[int] = []
    for point, when in points:
        root = shutil.copytree(first, tmp_path / f"killed-{point}-{when}")
        code, _ = await asyncio.to_thread(run, root, point, when)
        version, current, listed = read(root)
        assert code == -9
        versions.append(version)
        if version == 1:
            assert current == rows
            assert listed in (rows, changed), "the catalogue is replaced right before the description"
            killed.append(root)
        else:
            assert (version, current, listed) == (2, changed, changed)
    assert versions == sorted(versions), "once the description is written, the new version stays"
    assert (len(killed) >= 5, versions[-1]) == (True, 2)

    # While old files are removed; and what was left is removed by the next publish.
    for root in (killed[2], killed[-1]):
        assert (await asyncio.to_thread(run, root, 0, "", "--keep-versions", "1"))[0] == -9
        assert read(root)[1:] == (changed, changed)
        await _publish(shop, root, keep_versions=1)
        last = read(root)[0]
        assert [int(entry.parent.name) for entry in (root / "versions").glob("*/datapackage.json")] == [last]
        assert not [file for file in root.rglob(".*") if file.name not in (publishing.LOCK, publishing.MARKER)], (
            "no half-written file"
        )
        referred = {path for paths in Dataset(root).everything().values() for path in paths}
        assert {str(file.relative_to(root)) for file in (root / "data").rglob("*") if file.is_file()} == referred


async def test_one_publish_at_a_time(shop: Shop, tmp_path: Path) -> None:
    import fcntl

    root = tmp_path / "dataset"
    await market(shop, range(1))
    await _publish(shop, root)
    with (root / ".publish.lock").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(Refused, match="another publish"):
            await _publish(shop, root)
    results = await asyncio.gather(
        *(_publish(shop, root, title=f"Title {n}") for n in range(2)), return_exceptions=True
    )
    done = [one.version for one in results if isinstance(one, Published)]
    refused = [one for one in results if isinstance(one, Refused)]
    assert (done, len(refused)) == ([2], 1)


async def test_the_description_says_what_the_files_hold(shop: Shop, tmp_path: Path) -> None:
    root = tmp_path / "dataset"
    await market(shop, range(2))
    await _publish(shop, root)
    dataset = Dataset(root)
    package = dataset.package
    assert package["$schema"] == "https://datapackage.org/profiles/2.0/datapackage.json"
    assert (package["title"], package["version"], package["created"]) == ("Menus", "1.1.0", "2026-11-28T12:00:00Z")
    assert "licenses" not in package
    assert "No licence is granted" in package["description"]
    assert [one["title"] for one in package["sources"]] == ["Menus that dutchie serves"]
    (source,) = package["menuwatch"]["provenance"]
    assert (source["stores"], source["crawls"]) == (3, 6)
    kinds = {
        "integer": "int64",
        "string": "string",
        "boolean": "bool",
        "datetime": "timestamp[us, tz=UTC]",
        "date": "date32[day]",
    }
    for resource in package["resources"]:
        fields = resource["schema"]["fields"]
        assert all(field["description"] for field in fields)
        for path in dataset.files(resource["name"]):
            schema = parquet.read_schema(root / path)
            assert schema.names == [field["name"] for field in fields]
            for field in fields:
                kind = str(schema.field(field["name"]).type)
                assert kind == kinds.get(field["type"], kind), field
        key = ", ".join(resource["schema"]["primaryKey"])
        rows = dataset.rows(resource["name"], key)
        assert len(set(rows)) == len(rows), resource["name"]
        for reference in resource["schema"].get("foreignKeys", ()):
            (column,), (other,) = reference["fields"], reference["reference"]["fields"]
            known = {row[0] for row in dataset.rows(reference["reference"]["resource"], other)} | {None}
            assert {row[0] for row in dataset.rows(resource["name"], column)} <= known, (resource["name"], column)
    page = (root / "DICTIONARY.md").read_text()
    assert "| `seen_to` | TIMESTAMP WITH TIME ZONE | Last crawl that saw it like this; null while it lasts. |" in page
    await _publish(shop, root, licence="CC-BY-4.0")
    licensed = Dataset(root).package
    assert licensed["licenses"] == [{"name": "CC-BY-4.0", "title": "CC-BY-4.0"}]
    assert "No licence" not in licensed["description"]


PUBLISHED = {
    "price_history": "month state dispensary_id product_id position option seen_from seen_to present price_rec price_rec_special "
    "price_med price_med_special stock_status quantity quantity_capped thc_lo thc_hi thc_unit cbd_lo cbd_hi cbd_unit",
    "changes": "month state changed_at product_id dispensary_id price_changed stock_changed present price_rec_before price_rec_after "
    "price_rec_special_before price_rec_special_after price_med_before price_med_after price_med_special_before "
    "price_med_special_after stock_status_before stock_status_after quantity_before quantity_after prices_before prices_after "
    "stock_before stock_after",
    "menus": "product_id position dispensary_id store state provider provider_product_id name brand_name category_canon "
    "subcategory_canon strain_canon option weight_g content_mg pieces currency price price_rec price_rec_special price_med "
    "price_med_special price_per_g stock_status quantity quantity_capped last_seen_at updated_at canonical_product_id brand_id "
    "location_id",
    "products": "product_id dispensary_id store state provider provider_product_id name brand_name category subcategory strain_type "
    "category_canon subcategory_canon strain_canon price_rec price_rec_special price_med price_med_special is_in_stock stock_status "
    "quantity quantity_capped thc_lo thc_hi thc_unit cbd_lo cbd_hi cbd_unit cannabinoids terpenes batch_id tested_on packaged_on "
    "expires_on quantity_sold first_seen_at last_seen_at updated_at platform_created_at platform_updated_at canonical_product_id "
    "brand_id location_id",
    "canonical_products": "canonical_product_id brand_id name category form strain listings stores merged_into created_at changed_at",
    "brands": "brand_id slug name merged_into created_at",
    "stores": "dispensary_id platform platform_dispensary_id slug name address city state country zipcode latitude longitude timezone "
    "currency is_recreational is_medical location_id first_crawled_at last_crawled_at product_count",
    "locations": "location_id name chain address city state zipcode latitude longitude merged_into created_at changed_at",
    "price_index": "state category day stores known_stores matched carried entered expired outliers change level deviations",
}
"""Every column that is published: a new one is looked at before it is added here."""


async def test_foreign_files_are_not_taken_for_a_dataset(shop: Shop, tmp_path: Path) -> None:
    await market(shop, range(1))
    for number, path in enumerate(
        ("DICTIONARY.md", "versions/1/datapackage.json", "data/menus/all-0123456789abcdef.parquet")
    ):
        root = tmp_path / f"foreign-{number}"
        file = root / path
        file.parent.mkdir(parents=True)
        file.write_text("{}")
        with pytest.raises(Refused, match=f"holds {path} and no dataset: choose an empty destination"):
            await _publish(shop, root)
        assert file.read_text() == "{}"


async def test_nothing_private_is_published(shop: Shop, tmp_path: Path) -> None:
    root = tmp_path / "dataset"
    await market(shop, range(1))
    secret = "http://images.example/a.png?token=s3cr3t"
    await shop.execute("UPDATE catalog_products SET image_url = %s, description = %s", [secret, secret])
    await shop.execute("UPDATE dispensaries SET menu_url = %s, phone = '555-0100'", [secret])
    await _publish(shop, root)
    dataset = Dataset(root)
    texts = [str(row) for table in dataset.everything() for row in dataset.rows(table)]
    assert len(texts) > 100
    assert not [text for text in texts if "s3cr3t" in text or "555-0100" in text or "://" in text]
    assert {table.name: " ".join(column.name for column in table.columns) for table in DATASET} == PUBLISHED
    catalogue = (root / "catalog.ducklake").read_bytes()
    assert b"menuwatch-publish-" not in catalogue
    assert tempfile.gettempdir().encode() not in catalogue


async def test_without_ducklake_the_rest_is_published(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "dataset"
    await market(shop, range(1))
    assert (await _publish(shop, root)).catalogue
    assert (root / "catalog.ducklake").exists()
    monkeypatch.setitem(sys.modules, "duckdb_extension_ducklake", None)
    done = await _publish(shop, root)
    assert (done.catalogue, done.version, done.written) == (False, 2, 0)
    assert not (root / "catalog.ducklake").exists(), "that of an earlier version would outlive its files"
    assert Dataset(root).package["menuwatch"]["catalogue"] is None


async def test_the_command(shop: Shop, tmp_path: Path, database_url: str) -> None:
    env = {
        **os.environ, "DATABASE_URL": database_url, "MENUWATCH_HOME": str(tmp_path), "STORAGE_PATH": str(shop.storage),
    }  # fmt: skip

    async def run(*words: str) -> subprocess.CompletedProcess[str]:
        return await asyncio.to_thread(menuwatch, "publish", *words, env=env)

    await market(shop, range(1))
    root = tmp_path / "dataset"
    done = await run(str(root), "--json", "--title", "Prices", "--licence", "CC0-1.0")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["version"], report["changed"], report["rows"]["stores"]) == (1, True, 3)
    assert Dataset(root).package["title"] == "Prices"
    assert report["rows_read"] == sum(report["rows"].values())
    async with shop.pool.connection() as conn:
        cursor = await conn.execute("SELECT actor_kind, details FROM audit_log WHERE action = 'dataset_published'")
        ((kind, details),) = await cursor.fetchall()
    assert (kind, details["destination"], details["version"]) == ("cli", str(root), 1)
    assert (details["rows"], details["bytes"], details["files"]) == (
        sum(report["rows"].values()),
        report["bytes"],
        report["files"],
    )
    again = await run(str(root), "--title", "Prices", "--licence", "CC0-1.0")
    assert "Nothing changed" in again.stderr + again.stdout
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/letter.txt").write_text("mine")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/datapackage.json").write_text('{"name": "other"}')
    for words, reason in (
        (("ftp://host/x",), "give a directory, or s3://BUCKET/PREFIX"),
        (("s3://bucket",), "give a directory, or s3://BUCKET/PREFIX"),
        ((str(tmp_path / "no/such"),), "does not exist"),
        ((str(tmp_path / "mine"),), "letter.txt"),
        ((str(tmp_path / "other"),), "another dataset"),
        ((str(root), "--title", " "), "--title is empty"),
        ((str(root), "--keep-versions", "0"), "keep-versions"),
    ):
        refused = await run(*words)
        assert refused.returncode != 0
        assert reason in " ".join(refused.stderr.split()), (words, refused.stderr)
    assert sorted(entry.name for entry in (tmp_path / "mine").iterdir()) == ["letter.txt"]


async def test_the_command_with_a_bucket(shop: Shop, server: S3Server, tmp_path: Path, database_url: str) -> None:
    env = {
        **os.environ, **server.environ, "STORAGE_DRIVER": "local", "DATABASE_URL": database_url, "MENUWATCH_HOME": str(tmp_path),
        "STORAGE_PATH": str(shop.storage),
    }  # fmt: skip
    await market(shop, range(1))
    done = await asyncio.to_thread(menuwatch, "publish", f"s3://{BUCKET}/open/data", "--json", env=env)
    assert done.returncode == 0, done.stderr
    root = server.data / BUCKET / "open/data"
    dataset = Dataset(root)
    dataset.check()
    async with shop.pool.connection() as conn:
        assert normal(dataset.rows("price_history", HISTORY)) == await history_of(conn)
    dead = env | {"S3_ENDPOINT": "http://127.0.0.1:9"}
    failed = await asyncio.to_thread(menuwatch, "publish", f"s3://{BUCKET}/open/data", env=dead)
    assert failed.returncode != 0
    assert "http://127.0.0.1:9" in failed.stderr
    assert "Traceback" not in failed.stderr
