"""Former stores, products and price history: what becomes of them, out of each source, and of what cannot be taken."""

from __future__ import annotations

import asyncio
import csv
import io
from datetime import UTC, datetime
from pathlib import Path

import pytest

from menuwatch.archive.files import FileArchive
from menuwatch.cli import migrate_legacy
from menuwatch.core.encryption import SecretBox
from menuwatch.core.errors import Refused
from menuwatch.db.pool import Pool, connect
from menuwatch.ops.legacy import importer as taking
from menuwatch.ops.legacy.columns import PRODUCTS, SNAPSHOTS, STORES
from menuwatch.ops.legacy.sources import CsvFiles, Dump, Source, of_database
from menuwatch.ops.legacy.staging import Report
from menuwatch.pipeline.rebuild import rebuild
from menuwatch.platforms.dutchie.adapter import Dutchie
from tests.api.conftest import app, archive, platforms, shop  # noqa: F401
from tests.api.shop import START, Shop, item
from tests.legacy.legacy_database import fingerprint, rows
from tests.rebuild.random_histories import parts

NOW = datetime(2026, 11, 22, tzinfo=UTC)

STORE_CSV = """id,platform,platform_dispensary_id,slug,name,city,state,crawl_enabled,unknown_column
7,dutchie,5f0000000000000000000007,green-leaf,Green Leaf,Phoenix,az,t,x
8,dutchie,5f0000000000000000000008,blue-door,Blue Door,Tucson,AZ,f,x
"""
PRODUCT_CSV = """id,dispensary_id,provider_product_id,name_raw,brand_name_raw,category,last_seen_at
1,7,p1,Blue Dream,Acme,Flower,2026-03-02 00:00:00
2,7,p2,Gummies,Sweet,Edible,2026-03-01 00:00:00
3,8,q1,Vape,Acme,Vaporizers,2026-03-01 10:00:00
"""
SNAPSHOT_CSV = """dispensary_id,store_product_id,provider_product_id,price_rec,price_rec_special,is_in_stock,stock_quantity,\
thc_percent,crawled_at
7,1,p1,$35.00,,t,5,21.5,2026-03-01 00:00:00
7,2,p2,20,15,t,9,,2026-03-01T00:01:00Z
7,1,p1,35,,t,5,21.5%,2026-03-01 04:00:00+00
7,2,p2,20,15,t,9,,2026-03-01 04:00:03
7,1,p1,"$1,030.00",,f,0,21.5,2026-03-01 08:00:00
7,1,,30,,t,3,21.5,2026-03-01 12:00:00
7,1,p1,30,,t,3,21.5,2026-03-01 16:00:00
7,1,p1,30,,t,3,21.5,2026-03-02 00:00:00
"""
"""Store 7: p1 goes up, out of stock, down again; p2 is on the first two menus only, so that the fifth makes it out of stock.
Store 8 has no snapshot: its product is the only menu."""


def files(folder: Path, **texts: str) -> CsvFiles:
    names = {"stores": STORES, "products": PRODUCTS, "snapshots": SNAPSHOTS}
    found: dict[str, list[Path]] = {}
    for name, text in texts.items():
        path = folder / f"{name}.csv"
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        found[names[name]] = [path]
    return CsvFiles(found)


TARGET = taking.Target(archive=FileArchive(Path("no-such-folder")), secret_box=SecretBox(), image_hosts=())


async def take(pool: Pool, source: Source, *, dry_run: bool = False) -> Report:
    return await taking.take(pool, source, platforms={"dutchie": Dutchie()}, target=TARGET, now=NOW, dry_run=dry_run)


HISTORY = """
SELECT p.provider_product_id, to_char(s.seen_from AT TIME ZONE 'UTC', 'DD HH24:MI'),
       to_char(s.seen_to AT TIME ZONE 'UTC', 'DD HH24:MI'), s.present, s.stock_status, s.price_rec::text
  FROM product_states s JOIN catalog_products p ON p.id = s.product_id ORDER BY 1, s.seen_from
"""
EXPECTED = [
    ("p1", "01 00:00", "01 04:00", True, "in_stock", "35"),
    ("p1", "01 08:00", "01 08:00", True, "oos", "1030.00"),
    ("p1", "01 12:00", None, True, "in_stock", "30"),
    ("p2", "01 00:00", "01 04:00", True, "in_stock", "20"),
    ("p2", "01 16:00", None, False, "oos", "20"),
    ("q1", "01 10:00", None, True, "unknown", None),
]


async def _taken(pool: Pool, source: Source) -> None:
    """A dry run changes nothing, the run takes it all, and another one nothing more."""
    before = await fingerprint(pool)
    trial = await take(pool, source, dry_run=True)
    assert await fingerprint(pool) == before
    done = await take(pool, source)
    assert trial.plain() == {**done.plain(), "dry_run": True}
    assert (done.stores.taken, done.products.taken, done.snapshots.taken, done.crawls) == (2, 3, 8, 7)
    assert (done.failed, done.snapshots.skipped, done.products.skipped) == ([], {}, {})
    assert await rows(pool, HISTORY) == EXPECTED
    after = await fingerprint(pool)
    again = await take(pool, source)
    assert (again.stores.taken, again.products.taken, again.snapshots.taken, again.crawls) == (0, 0, 0, 0)
    assert again.snapshots.skipped == {taking.TAKEN: 8}
    assert await fingerprint(pool) == after


async def test_csv(pool: Pool, tmp_path: Path) -> None:
    await _taken(pool, files(tmp_path, stores=STORE_CSV, products=PRODUCT_CSV, snapshots=SNAPSHOT_CSV))
    assert await rows(
        pool,
        "SELECT slug, state, crawl_enabled, last_crawled_at, last_payload_id, product_count FROM dispensaries ORDER BY slug",
    ) == [
        ("blue-door", "AZ", False, datetime(2026, 3, 1, 10, tzinfo=UTC), None, 1),
        ("green-leaf", "AZ", True, datetime(2026, 3, 2, tzinfo=UTC), None, 1),
    ]
    assert await rows(
        pool,
        "SELECT name, brand_name, category, thc_lo::text, quantity, consecutive_misses FROM catalog_products ORDER BY 1 LIMIT 2",
    ) == [("Blue Dream", "Acme", "Flower", "21.5", 3, 0), ("Gummies", "Sweet", "Edible", None, 0, 3)]
    # 2 + 2 + 1 + 1 + 1 + 1 and the only menu of the other store.
    assert await rows(pool, "SELECT count(*) FROM store_product_snapshots") == [(9,)]
    more = (
        SNAPSHOT_CSV.splitlines()[0] + "\n7,1,p1,31,,t,3,21.5,2026-03-02 04:00:00\n7,1,p1,9,,t,3,,2026-03-01 20:00:00\n"
    )
    done = await take(pool, files(tmp_path, stores=STORE_CSV, snapshots=more))
    assert (done.snapshots.taken, done.snapshots.skipped) == (1, {taking.BETWEEN: 1})


def _table(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


async def test_tables(pool: Pool, database_url: str) -> None:
    """Those of a schema of the same database; an address goes the same way."""
    async with pool.connection() as conn:
        await conn.execute("CREATE SCHEMA legacy")
        for name, text in ((STORES, STORE_CSV), (PRODUCTS, PRODUCT_CSV), (SNAPSHOTS, SNAPSHOT_CSV)):
            headings, *lines = _table(text)
            kinds = {
                "crawled_at": "timestamptz",
                "last_seen_at": "timestamp",
                "is_in_stock": "boolean",
                "stock_quantity": "integer",
            }
            columns = ", ".join(f"{column} {kinds.get(column, 'text')}" for column in headings)
            await conn.execute(f"SET TimeZone = 'UTC'; CREATE TABLE legacy.{name} ({columns})")
            async with conn.cursor() as cursor, cursor.copy(f"COPY legacy.{name} FROM STDIN") as copy:
                for line in lines:
                    await copy.write_row([value or None for value in line])
        await conn.execute("RESET TimeZone")
    async with await connect(database_url) as conn:
        source = await of_database(conn, database_url, "legacy")
        with pytest.raises(Refused, match="schema nowhere has none of the tables"):
            await of_database(conn, database_url, "nowhere")
    await _taken(pool, source)


async def test_dump(pool: Pool, tmp_path: Path) -> None:
    sections = ["-- a dump\n"]
    for name, text in ((STORES, STORE_CSV), (PRODUCTS, PRODUCT_CSV), (SNAPSHOTS, SNAPSHOT_CSV)):
        headings, *lines = _table(text)
        body = "".join("\t".join(value or "\\N" for value in line) + "\n" for line in lines)
        sections.append(f"COPY public.{name} ({', '.join(headings)}) FROM stdin;\n{body}\\.\n\nSELECT 1;\n")
    path = tmp_path / "former.sql"
    path.write_text("".join(sections))
    await _taken(pool, Dump(path))
    path.write_text("INSERT INTO public.dispensaries VALUES (1);\n")
    with pytest.raises(Refused, match="in COPY sections: make the dump plain"):
        await take(pool, Dump(path))


async def test_what_cannot_be_taken(pool: Pool, tmp_path: Path) -> None:
    """Each row costs itself, and the report says why and where."""
    heading = "dispensary_id,provider_product_id,name_raw,price_rec,is_in_stock,crawled_at\n"
    bad = [
        ("9,p1,x,1,t,2026-03-01", "its store is not known"),
        ("7,,x,1,t,2026-03-01", "it has no product name"),
        ("7,p2,x,-1,t,2026-03-01", "price_rec is not a price"),
        ("7,p2,x,NaN,t,2026-03-01", "price_rec is not a price"),
        ("7,p2,x,1,perhaps,2026-03-01", "is_in_stock is neither true nor false"),
        ("7,p2,x,1,t,yesterday", "at is not a time"),
        ("7,p2,x,1,t,", "it has no time"),
        ("7,p2,x,1,t,2027-01-01", "its time is in the future"),
        ("7,p2,x,1,t", "it has 5 fields instead of 6"),
        ("7,p2,caf\udce9,1,t,2026-03-01", "it is not UTF-8"),
        (f"7,{'p' * 201},x,1,t,2026-03-01", "product is too long"),
    ]
    good = "7,p1,Café\0,1,t,2026-03-01\n7,p1,Café,2,t,2026-03-01 00:10\n"
    stores = STORE_CSV + "9,eaze,1,s,S,,,t,x\n10,dutchie,,,Nameless,,,t,x\n"
    text = heading + "".join(f"{line}\n" for line, _ in bad) + good
    done = await take(pool, files(tmp_path, stores=stores, snapshots=text))
    reasons = [reason for _, reason in bad if reason != "its store is not known"]
    assert set(done.stores.skipped) == {"its platform is not known", "it has neither the platform's id nor a slug"}
    twice = "the product is on that menu twice: the last one is used"
    assert done.snapshots.skipped == {
        **{one: reasons.count(one) for one in reasons},
        "its store was not imported": 1,
        twice: 1,
    }
    assert done.snapshots.examples["price_rec is not a price"] == ["snapshots.csv:4: -1", "snapshots.csv:5: NaN"]
    assert (done.snapshots.taken, done.without_zone > 0) == (1, True)
    assert await rows(pool, "SELECT name, price_rec::text FROM catalog_products") == [("Café", "2")]


@pytest.mark.parametrize(
    ("name", "text", "word"),
    [
        ("snapshots", "dispensary_id,provider_product_id,price_rec\n", "no column crawled_at or captured_at"),
        ("products", "id,dispensary_id,name\n", "no column provider_product_id"),
        ("stores", "name\nx\n", "no column id"),
        ("stores", "", "is empty"),
    ],
)
async def test_columns_that_are_missing(pool: Pool, tmp_path: Path, name: str, text: str, word: str) -> None:
    with pytest.raises(Refused, match=word):
        await take(pool, files(tmp_path, **{name: text}))
    wide = tmp_path / "wide.csv"
    wide.write_text(text, encoding="utf-16")
    if text:
        with pytest.raises(Refused, match="is UTF-16: save it as UTF-8"):
            await take(pool, CsvFiles({STORES: [wide]}))


async def test_before_what_we_saw(shop: Shop, tmp_path: Path) -> None:  # noqa: F811
    """Menuwatch has crawled the store: its own rows stay to the letter, and what was before is joined to them."""
    store = await shop.store()
    first = [item("p1"), item("late")]
    await shop.crawl(store, 0, first[:1])
    for hours in (4, 8, 12):
        await shop.crawl(store, hours, first)
    key = (await rows(shop.pool, "SELECT platform_dispensary_id FROM dispensaries"))[0][0]
    ours = await rows(shop.pool, "SELECT * FROM catalog_products p ORDER BY id")
    crawls = await rows(shop.pool, "SELECT * FROM store_crawls ORDER BY crawled_at")
    day = f"{START:%Y-%m-}"
    assert (START.day, START.hour) == (1, 12), "what was before is of the same day"
    lines = ["provider_dispensary_id,provider_product_id,name_raw,price_rec,is_in_stock,crawled_at"]
    for clock in ("00:00", "00:40"):
        lines += [f"{key},{p},{p},{price},t,{day}01 {clock}" for p, price in (("p1", 25), ("gone", 5), ("late", 7))]
    lines.append(f"{key},p1,p1,1,t,{START.isoformat()}")
    source = files(tmp_path, snapshots="\n".join(lines) + "\n")
    before = await fingerprint(shop.pool)
    await take(shop.pool, source, dry_run=True)
    assert await fingerprint(shop.pool) == before
    done = await take(shop.pool, source)
    assert (done.snapshots.taken, done.snapshots.skipped, done.failed) == (6, {taking.OURS: 1}, [])
    assert (await rows(shop.pool, "SELECT * FROM store_crawls ORDER BY crawled_at"))[2:] == crawls
    now = await rows(shop.pool, "SELECT * FROM catalog_products WHERE provider_product_id <> 'gone' ORDER BY id")
    first_seen = 6
    names = [column[0] for column in await rows(shop.pool, _COLUMNS)]
    assert names[first_seen] == "first_seen_at"
    for mine, then in zip(now, ours, strict=True):
        assert [v for i, v in enumerate(mine) if i != first_seen] == [v for i, v in enumerate(then) if i != first_seen]
        assert mine[first_seen] == datetime(START.year, START.month, 1, tzinfo=UTC)
    history = await rows(shop.pool, _SPANS)
    t = ["01 12", "01 16", "01 20", "02 00"]
    assert history == [
        ("gone", "01 00", "01 00", t[2], True, "in_stock"),
        ("gone", t[2], None, None, False, "oos"),
        ("late", "01 00", "01 00", t[1], True, "in_stock"),
        ("late", t[1], None, None, True, "in_stock"),
        ("p1", "01 00", "01 00", t[0], True, "in_stock"),
        ("p1", t[0], None, None, True, "in_stock"),
    ]
    assert await rows(shop.pool, "SELECT count(*) FROM dispensaries") == [(1,)]
    again = await take(shop.pool, source)
    assert (again.snapshots.taken, again.snapshots.skipped) == (0, {taking.TAKEN: 6, taking.OURS: 1})
    # What is ours can be made anew from the archive, with the earlier history before it.
    with pytest.raises(Refused, match="the archive lacks the payloads of 2 crawls"):
        await rebuild(parts(shop), store)
    anew = await rebuild(parts(shop), store, since=START)
    # Only the figures of its first crawls differ: what was new to us is not new any more.
    assert (bool(anew.products), bool(anew.states)) == (False, False)
    assert await rows(shop.pool, _SPANS) == history
    # What is seen next goes on as if nothing had been.
    await shop.crawl(store, 16, [item("gone"), *first])
    (back,) = await rows(
        shop.pool, "SELECT consecutive_misses, present FROM catalog_products WHERE provider_product_id = 'gone'"
    )
    assert back == (0, True)


_COLUMNS = (
    "SELECT attname FROM pg_attribute WHERE attrelid = 'catalog_products'::regclass AND attnum > 0 ORDER BY attnum"
)
_SPANS = """
SELECT p.provider_product_id, to_char(s.seen_from AT TIME ZONE 'UTC', 'DD HH24'), to_char(s.seen_to AT TIME ZONE 'UTC', 'DD HH24'),
       to_char(s.ended_at AT TIME ZONE 'UTC', 'DD HH24'), s.present, s.stock_status
  FROM (SELECT product_id, seen_from, seen_to, ended_at, present, stock_status FROM product_history
        UNION ALL SELECT id, state_from, NULL, NULL, present, stock_status FROM catalog_products) s
  JOIN catalog_products p ON p.id = s.product_id ORDER BY 1, s.seen_from
"""


async def test_one_that_was_interrupted(pool: Pool, tmp_path: Path) -> None:
    """Between two stores, and at one that the database refuses: what was taken stays, and the next run takes the rest."""
    source = files(tmp_path, stores=STORE_CSV, products=PRODUCT_CSV, snapshots=SNAPSHOT_CSV)

    def stop(done: int, of: int) -> None:
        if done == 1:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        await taking.take(pool, source, platforms={"dutchie": Dutchie()}, target=TARGET, now=NOW, on_progress=stop)
    assert len(await rows(pool, HISTORY)) == 5
    async with pool.connection() as conn:
        await conn.execute(
            "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE check_violation USING MESSAGE = 'no more'; END $$;"
            "CREATE TRIGGER no BEFORE INSERT ON store_crawls FOR EACH ROW EXECUTE FUNCTION no()"
        )
    refused = await take(pool, source)
    assert (len(refused.failed), refused.failed[0].endswith(": no more")) == (1, True)
    async with pool.connection() as conn:
        await conn.execute("DROP TRIGGER no ON store_crawls")
    assert (await take(pool, source)).failed == []
    assert await rows(pool, HISTORY) == EXPECTED


async def test_at_the_terminal(
    database_url: str, pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("MENUWATCH_HOME", str(tmp_path / "home"))
    source = files(tmp_path, stores=STORE_CSV, products=PRODUCT_CSV, snapshots=SNAPSHOT_CSV)
    paths = source.files
    await asyncio.to_thread(
        migrate_legacy.import_,
        paths["dispensaries"],
        paths["store_products"],
        paths["store_product_snapshots"],
        dry_run=True,
    )
    assert capsys.readouterr().out.startswith("2 stores read, 2 would be imported.\n")
    assert await rows(pool, "SELECT count(*) FROM dispensaries") == [(0,)]
    with pytest.raises(Refused, match="schema legacy has none of the tables"):
        await asyncio.to_thread(migrate_legacy.import_)
    with pytest.raises(Refused, match="give one source, not CSV files and --dump"):
        migrate_legacy.import_(stores=[tmp_path], dump=tmp_path)
