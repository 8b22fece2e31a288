"""The archive over HTTP: lists, the document itself, comparisons, release from quarantine."""

from __future__ import annotations

import gzip
import zlib
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from menuwatch.api.routes.payloads import takes_gzip
from menuwatch.archive.files import Damaged
from tests.api.shop import Shop, at, item, menu


async def test_lists_newest_first_and_by_filter(shop: Shop) -> None:
    one, two = await shop.store("one"), await shop.store("two")
    ids = [await shop.crawl(one, hour, [item("a", options=[("1g", 5 + hour, 1)])]) for hour in range(3)]
    other = await shop.archived(two, 1, b"<html>", status="rejected", reason="html: a page")
    assert [p["id"] for p in await shop.walk("/api/payloads", limit=1)] == [ids[2], other, ids[1], ids[0]]
    assert [p["id"] for p in await shop.walk("/api/payloads", dispensary_id=one)] == ids[::-1]
    assert [p["id"] for p in await shop.walk("/api/payloads", status="rejected")] == [other]
    assert [p["id"] for p in await shop.walk(f"/api/payloads/store/{one}", limit=2)] == ids[::-1]
    assert (await shop.ask(f"/api/payloads/store/{one}/latest"))["id"] == ids[2]
    assert (await shop.ask(f"/api/payloads/store/{two}/latest"))["id"] == other
    assert "status ok" in (await shop.refused(f"/api/payloads/store/{two}/latest?status=ok", 404))["detail"]
    found = await shop.ask(f"/api/payloads/{ids[0]}")
    assert (found["status"], found["product_count"], found["fetched_at"]) == ("ok", 1, "2026-03-01T12:00:00Z")
    assert found["applied_at"] is not None
    for path in (
        "/api/payloads/99",
        "/api/payloads/99/data",
        "/api/payloads/store/99",
        "/api/payloads/store/99/latest",
    ):
        assert "99 does not exist" in (await shop.refused(path, 404))["detail"]


async def test_data_is_the_stored_file(shop: Shop) -> None:
    store = await shop.store()
    payload_id = await shop.crawl(store, 0, [item("a")])
    meta = await shop.ask(f"/api/payloads/{payload_id}")
    path = f"/api/payloads/{payload_id}/data"

    plain = await shop.http.get(path, headers={"Accept-Encoding": "identity"})
    assert plain.status_code == 200
    assert "content-encoding" not in plain.headers
    assert sha256(plain.content).hexdigest() == meta["sha256"]
    assert plain.headers["etag"] == f'"{meta["sha256"]}"'
    assert "immutable" in plain.headers["cache-control"]
    assert plain.headers["vary"] == "Accept-Encoding"
    assert msgspec.json.decode(plain.content)["pages"][0]["data"]["filteredProducts"]["products"][0]["id"] == "a"

    async with shop.http.stream("GET", path, headers={"Accept-Encoding": "br, gzip;q=0.5"}) as packed:
        raw = b"".join([chunk async for chunk in packed.aiter_raw()])
    assert packed.headers["content-encoding"] == "gzip"
    assert len(raw) == meta["bytes"] == int(packed.headers["content-length"])
    assert gzip.decompress(raw) == plain.content

    assert packed.headers["etag"] == f'"{meta["sha256"]}-gzip"', "other bytes, another tag"

    for encoding, own, other in (("identity", plain, packed), ("gzip", packed, plain)):
        accept = {"Accept-Encoding": encoding}
        for tag in (own.headers["etag"], f'"other", W/{own.headers["etag"]}', "*"):
            again = await shop.http.get(path, headers={"If-None-Match": tag, **accept})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", own.headers["etag"])
        fresh = await shop.http.get(path, headers={"If-None-Match": other.headers["etag"], **accept})
        assert (fresh.status_code, fresh.content) == (200, plain.content)
    assert (await shop.http.get(path, headers={"If-None-Match": '"other"'})).status_code == 200


@pytest.mark.parametrize(
    ("header", "taken"),
    [
        (None, False), ("", False), ("gzip", True), ("GZIP", True), ("x-gzip", True), ("*", True), ("deflate", False),
        ("gzip;q=0", False), ("gzip; q=0.0, *", False), ("identity, *;q=0", False),
        ("br;q=1, gzip;q=0.1", True), ("gzip;q=nonsense", False),
        ("identity;q=1, gzip;q=0.5", False), ("identity;q=0.5, gzip;q=0.5", True), ("gzip;q=0, identity;q=0", False),
    ],
)  # fmt: skip
def test_who_takes_gzip(header: str | None, taken: bool) -> None:
    assert takes_gzip(header) is taken


async def test_a_file_that_is_gone_or_damaged(shop: Shop) -> None:
    store = await shop.store()
    payload_id = await shop.crawl(store, 0, [item("a")])
    meta = await shop.ask(f"/api/payloads/{payload_id}")
    file = shop.storage / meta["path"]
    whole = file.read_bytes()
    for other in (whole[:40], gzip.compress(b"{}")):
        file.write_bytes(other)
        for encoding in ("identity", "gzip"):
            path = f"/api/payloads/{payload_id}/data"
            problem = await shop.refused(path, 500, headers={"Accept-Encoding": encoding})
            assert problem["type"] == "/problems/payload-damaged", "nobody keeps for a year what is not the document"
    file.unlink()
    problem = await shop.refused(f"/api/payloads/{payload_id}/data", 500)
    assert problem["type"] == "/problems/payload-missing"
    assert "menuwatch verify --repair" in problem["detail"]
    assert (await shop.http.head(f"/api/payloads/{payload_id}/data")).status_code == 500
    problem = await shop.refused(f"/api/payloads/store/{store}/diff?from={payload_id}&to={payload_id}", 500)
    assert problem["type"] == "/problems/payload-missing"
    assert str(file) not in problem["detail"], "where the storage lies is nobody's business"


def _memory(name: str) -> int:
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


async def test_a_file_that_became_a_bomb_is_unpacked_no_further_than_its_row_says(shop: Shop) -> None:
    payload_id = await shop.crawl(await shop.store(), 0, [item("a")])
    meta = await shop.ask(f"/api/payloads/{payload_id}")
    file = shop.storage / meta["path"]
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join(packer.compress(bytes(1_000_000)) for _ in range(200)) + packer.flush()
    for content in (bomb[: meta["raw_bytes"]], bomb):
        file.write_bytes(content)
        Path("/proc/self/clear_refs").write_text("5")
        before = _memory("VmRSS")
        for encoding in ("identity", "gzip"):
            path = f"/api/payloads/{payload_id}/data"
            problem = await shop.refused(path, 500, headers={"Accept-Encoding": encoding})
            assert problem["type"] == "/problems/payload-damaged"
        await shop.refused(f"/api/payloads/store/{meta['dispensary_id']}/diff?from={payload_id}&to={payload_id}", 500)
        assert _memory("VmHWM") - before < 50_000_000
    with pytest.raises(Damaged):
        shop.archive.read(meta["path"], meta["sha256"], meta["raw_bytes"])


async def test_head_is_get_without_the_body(shop: Shop) -> None:
    store = await shop.store()
    for hour in range(2):
        payload_id = await shop.crawl(store, hour, [item("a", options=[("1g", 5 + hour, 1)])])
    paths = [
        "",
        f"/{payload_id}",
        f"/{payload_id}/data",
        f"/store/{store}",
        f"/store/{store}/latest",
        f"/store/{store}/diff",
    ]
    for path in paths:
        for encoding in ("identity", "gzip"):
            asked = [
                await shop.http.request(method, f"/api/payloads{path}", headers={"Accept-Encoding": encoding})
                for method in ("GET", "HEAD")
            ]
            assert [answer.status_code for answer in asked] == [200, 200], path
            assert asked[1].content == b""
            headers = [{k: v for k, v in answer.headers.items() if k != "x-request-id"} for answer in asked]
            assert headers[0] == headers[1], path
            again = await shop.http.head(
                f"/api/payloads{path}", headers={"Accept-Encoding": encoding, "If-None-Match": headers[0]["etag"]}
            )
            assert again.status_code == 304, path


async def test_what_moves_says_where_it_stays(shop: Shop) -> None:
    store = await shop.store()
    one, two = [await shop.crawl(store, hour, [item("a", options=[("1g", 5 + hour, 1)])]) for hour in range(2)]
    for path, place in (
        (f"/api/payloads/store/{store}/latest", f"/api/payloads/{two}"),
        (f"/api/payloads/store/{store}/diff", f"/api/payloads/store/{store}/diff?from={one}&to={two}"),
    ):
        moving = await shop.http.get(path)
        assert moving.headers["content-location"] == place
        assert (await shop.http.get(place)).json() == moving.json()


async def test_what_cannot_be_asked(shop: Shop) -> None:
    store = await shop.store()
    await shop.crawl(store, 0, [item("a")])
    for path, named in (
        ("/api/payloads/abc", "payload_id"),
        ("/api/payloads/0/data", "payload_id"),
        ("/api/payloads/99999999999999999999", "payload_id"),
        ("/api/payloads/store/abc/latest", "dispensary_id"),
        (f"/api/payloads/store/{store}/diff?from=abc", "from"),
        (f"/api/payloads/store/{store}/diff?to=0", "to"),
        (f"/api/payloads/store/{store}/diff?form=1", "form"),
        ("/api/payloads?status=good", "status"),
        (f"/api/payloads/store/{store}/latest?status=good", "status"),
        ("/api/payloads?limit=0", "limit"),
    ):
        problem = await shop.refused(path, 422)
        assert [error["parameter"] for error in problem["errors"]] == [named], path
    assert "quarantined" in (await shop.refused("/api/payloads?status=good", 422))["detail"]
    assert "cursor" in (await shop.refused("/api/payloads?cursor=abc", 400))["detail"]


async def test_diff_has_the_agreed_form(shop: Shop) -> None:
    store = await shop.store()
    first = await shop.crawl(
        store,
        0,
        [item("a", "Apple"), item("b", "Berry"), item("c", "Cherry"), item("gone", "Gone"), item("same", "Same")],
    )
    second = await shop.crawl(
        store,
        1,
        [
            item("a", "Apple", options=[("1/8oz", "35.50", 5)]),
            item("b", "Berry", options=[("1/8oz", 40, 0)]),
            item("c", "Cherry", options=[("1/8oz", 42, 25)], special=[41]),
            item("new", "New", options=[("1g", 7, None)]),
            item("same", "Same"),
        ],
    )
    found = await shop.ask(f"/api/payloads/store/{store}/diff")
    assert list(found) == ["success", "from", "to", "diff", "details"]
    assert found["success"] is True
    assert found["from"] == {"id": first, "fetchedAt": "2026-03-01T12:00:00Z", "productCount": 5}
    assert found["to"] == {"id": second, "fetchedAt": "2026-03-01T13:00:00Z", "productCount": 5}
    assert found["diff"] == {"added": 1, "removed": 1, "priceChanges": 2, "stockChanges": 2, "unreadable": 0}
    details = found["details"]
    assert details["added"] == [
        {"providerProductId": "new", "name": "New", "brandName": "Acme", "priceRec": 7, "stockStatus": "unknown"}
    ]
    assert [row["name"] for row in details["removed"]] == ["Gone"]

    def prices(rec: float, special: float | None = None) -> list[dict[str, object]]:
        return [
            {"option": "1/8oz", "priceRec": rec, "priceRecSpecial": special, "priceMed": None, "priceMedSpecial": None}
        ]

    assert details["priceChanges"] == [
        {"providerProductId": "a", "name": "Apple", "before": prices(40), "after": prices(35.5)},
        {"providerProductId": "c", "name": "Cherry", "before": prices(40), "after": prices(42, 41)},
    ]

    def stock(status: str, quantity: int, capped: bool = False) -> dict[str, object]:
        option = {"option": "1/8oz", "stockStatus": status, "quantity": quantity, "capped": capped}
        return {"stockStatus": status, "options": [option]}

    assert details["stockChanges"] == [
        {"providerProductId": "b", "name": "Berry", "before": stock("in_stock", 5), "after": stock("oos", 0)},
        {
            "providerProductId": "c",
            "name": "Cherry",
            "before": stock("in_stock", 5),
            "after": stock("in_stock", 25, True),
        },
    ]
    backwards = await shop.ask(f"/api/payloads/store/{store}/diff", params={"from": second, "to": first})
    assert [row["name"] for row in backwards["details"]["added"]] == ["Gone"]


async def test_what_cannot_be_read_is_not_gone(shop: Shop) -> None:
    store = await shop.store()
    good = [item("a", "Apple"), item("b", "Berry"), item("gone", "Gone"), item("never", "Never") | {"Name": 7}]
    older = await shop.crawl(store, 0, good)
    newer = await shop.crawl(
        store, 1, [item("a"), item("b", "Berry") | {"Name": 7}, good[3], {"_id": [5], "Name": "Nobody"}]
    )
    found = await shop.ask(f"/api/payloads/store/{store}/diff", params={"from": older, "to": newer})
    assert found["diff"] == {"added": 0, "removed": 1, "priceChanges": 0, "stockChanges": 0, "unreadable": 3}
    assert [row["providerProductId"] for row in found["details"]["removed"]] == ["gone"]
    told = found["details"]["unreadable"]
    assert [(row["providerProductId"], row["name"]) for row in told] == [("b", "Berry"), ("never", None), (None, None)]
    assert [(row["before"] is None, row["after"] is None) for row in told] == [
        (True, False),
        (False, False),
        (True, False),
    ]
    assert "Name" in told[0]["after"]
    back = await shop.ask(f"/api/payloads/store/{store}/diff", params={"from": newer, "to": older})
    assert [row["providerProductId"] for row in back["details"]["added"]] == ["gone"], "b was there all the time"


async def test_which_payloads_a_diff_takes(shop: Shop) -> None:
    store, other = await shop.store("one"), await shop.store("two")
    problem = await shop.refused(f"/api/payloads/store/{store}/diff", 409)
    assert "does not have two ok payloads" in problem["detail"]
    one = await shop.crawl(store, 0, [item("a"), item("b")])
    await shop.refused(f"/api/payloads/store/{store}/diff", 409)
    suspect = await shop.archived(store, 1, menu([item("a")]), count=1, status="quarantined", reason="shrunk")
    two = await shop.crawl(store, 2, [item("a"), item("b"), item("c")])
    three = await shop.crawl(store, 3, [item("a")])
    broken = await shop.archived(store, 4, b"<html>blocked", status="rejected", reason="html: a page")
    stranger = await shop.crawl(other, 0, [item("a")])

    async def pair(**params: int) -> tuple[int, int]:
        found = await shop.ask(f"/api/payloads/store/{store}/diff", params=params)
        return found["from"]["id"], found["to"]["id"]

    assert await pair() == (two, three)
    assert await pair(to=two) == (one, two), "the quarantined one between them is passed over"
    assert await pair(**{"from": one}) == (one, three)
    assert await pair(to=suspect) == (one, suspect), "what a suspect menu would change can be seen"
    problem = await shop.refused(f"/api/payloads/store/{store}/diff?to={broken}", 409)
    assert f"payload {broken} is rejected and contains no menu" in problem["detail"]
    problem = await shop.refused(f"/api/payloads/store/{store}/diff?from={stranger}&to={two}", 404)
    assert f"belongs to store {other}, not to store {store}" in problem["detail"]
    assert (
        "payload 999 does not exist"
        in (await shop.refused(f"/api/payloads/store/{store}/diff?from=999", 404))["detail"]
    )
    assert "store 99 does not exist" in (await shop.refused("/api/payloads/store/99/diff", 404))["detail"]


async def test_release_counts_at_once_and_has_it_applied(shop: Shop) -> None:
    store = await shop.store()
    ok = await shop.crawl(store, 0, [item("a"), item("b")])
    suspect = await shop.archived(
        store, 1, menu([item("a")]), count=1, status="quarantined", reason="shrunk: 1 product"
    )
    released = await shop.ask(f"/api/payloads/{suspect}/release", method="POST")
    assert (released["payload"]["status"], released["payload"]["reason"]) == ("ok", None)
    assert released["payload"]["released_at"] is not None
    task = await shop.ask(f"/api/tasks/{released['task_id']}")
    assert (task["role"], task["priority"], task["payload"]) == ("product_refresh", 20, {"payload_id": suspect})
    assert (task["status"], task["dispensary_id"]) == ("pending", store)

    problem = await shop.refused(f"/api/payloads/{suspect}/release", 409, method="POST")
    assert problem["detail"] == f"payload {suspect} is ok: only a quarantined payload can be released"
    await shop.refused(f"/api/payloads/{ok}/release", 409, method="POST")
    await shop.refused("/api/payloads/99/release", 404, method="POST")
    assert (await shop.ask("/api/tasks/counts"))["total"] == 1, "what is refused enqueues nothing"
    assert at(1).isoformat()[:16] == released["payload"]["fetched_at"][:16]
