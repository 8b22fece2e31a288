"""The worker registry, commands to workers, and endpoints for third-party workers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

from psycopg.types.json import Jsonb

from menuwatch.pipeline import registry as pipeline
from menuwatch.pipeline.context import HandlerContext
from menuwatch.queue import store as tasks
from menuwatch.queue.model import NewTask, Role
from menuwatch.workers import commands, registry
from menuwatch.workers import service as operations
from menuwatch.workers.registry import Identity
from tests.api.shop import Shop

BASE = "/api/worker-registry"
ROLES = "store_discovery, entry_point_discovery, product_discovery, payload_fetch, product_refresh, analytics_refresh, product_resync"


async def _enter(
    shop: Shop, worker_id: str, *, status: str = "active", silent: float = 0, age: float = 0, **more: Any
) -> None:
    """A row of the registry, as a worker of ours would have left it that many seconds ago."""
    who = {"friendly_name": worker_id.title(), "pod": None, "roles": None, "heartbeat": {}, **more}
    await shop.execute(
        "INSERT INTO worker_registry (worker_id, friendly_name, pod, host, pid, roles, status, started_at, last_heartbeat_at,"
        " heartbeat) VALUES (%s, %s, %s, 'box', 1, %s, %s, now() - make_interval(secs => %s), now() - make_interval(secs => %s), %s)",
        [worker_id, who["friendly_name"], who["pod"], who["roles"], status, age, silent, Jsonb(who["heartbeat"])],
    )


async def _post(shop: Shop, path: str, expected: int = 200, /, **body: Any) -> Any:
    return await shop.ask(f"{BASE}/{path}", method="POST", status=expected, json=body)


async def test_who_lives_and_who_does_not(shop: Shop) -> None:
    await _enter(shop, "alive", age=30, pod="Kryll", heartbeat={"max_concurrent_tasks": 3})
    await _enter(shop, "dead", silent=600, age=1000)
    await _enter(shop, "gone", status="stopped", silent=5, age=500)
    items = (await shop.ask(BASE))["items"]
    assert [(one["worker_id"], one["status"], one["alive"]) for one in items] == [
        ("alive", "active", True),
        ("gone", "stopped", False),
        ("dead", "active", False),
    ]
    assert 600 <= items[2]["silent_seconds"] < 660
    assert items[0]["heartbeat"] == {"max_concurrent_tasks": 3}

    async def ids(**where: Any) -> list[str]:
        return [one["worker_id"] for one in await shop.walk(BASE, **where)]

    assert await ids(alive=True) == ["alive"]
    assert await ids(alive=False) == ["gone", "dead"]
    assert await ids(status=["active", "stopped"], limit=1) == ["alive", "gone", "dead"]
    assert await ids(status="stopped") == ["gone"]
    assert await ids(pod="Kryll") == ["alive"]


async def test_pages_neither_lose_nor_repeat(shop: Shop) -> None:
    for n in range(7):
        await _enter(shop, f"w{n}", age=n // 2)  # some start at the same moment
    await shop.execute("UPDATE worker_registry SET started_at = date_trunc('minute', started_at)")
    found = [one["worker_id"] for one in await shop.walk(BASE, limit=2)]
    assert sorted(found) == [f"w{n}" for n in range(7)]


async def test_filters_that_do_not_exist_are_named(shop: Shop) -> None:
    for query, says in (
        ({"status": "asleep"}, "active, paused, backing_off, stopping, stopped"),
        ({"role": "dance"}, ROLES),
        ({"state": "active"}, "unknown"),
        ({"limit": 0}, "at least 1"),
    ):
        problem = await shop.refused(BASE, 422, params=query)
        assert problem["errors"][0]["parameter"].split(".")[0] == next(iter(query))
        assert says in problem["errors"][0]["detail"], problem
    await shop.refused(BASE, 400, params={"cursor": "x"})


async def test_roles(shop: Shop) -> None:
    await _enter(shop, "any", heartbeat={"max_concurrent_tasks": 4})
    await _enter(shop, "fetcher", roles=["payload_fetch"], heartbeat={"max_concurrent_tasks": 2})
    await _enter(shop, "resting", roles=["payload_fetch"], status="paused")
    await _enter(
        shop, "without-proxy", roles=["payload_fetch", "product_refresh"], heartbeat={"paused_roles": ["payload_fetch"]}
    )
    await _enter(shop, "dead", silent=600)
    await _enter(shop, "left", status="stopped")
    found = {one.pop("role"): one for one in (await shop.ask(f"{BASE}/roles"))["items"]}
    assert list(found) == [str(role) for role in Role]
    names = {role: (one.pop("name"), one.pop("description"), one.pop("handler")) for role, one in found.items()}
    assert names["product_refresh"] == ("Product refresh", "apply an archived menu to the catalog", "ProductRefresh")
    handlers = pipeline.handlers(cast("HandlerContext", SimpleNamespace()))
    assert {role: name for role, (_, _, name) in names.items()} == {
        str(role): type(handler).__name__ for role, handler in handlers.items()
    }
    assert found["payload_fetch"] == {"live_workers": 4, "claiming_workers": 2, "slots": 8}
    assert found["product_refresh"] == {"live_workers": 2, "claiming_workers": 2, "slots": 5}
    assert found["analytics_refresh"] == {"live_workers": 1, "claiming_workers": 1, "slots": 4}


async def test_a_worker_of_somebody_else(shop: Shop) -> None:
    """From its start to its end, by the API alone."""
    made = await _post(
        shop, "register", 201, worker_id="mine-1", host="box", roles=["product_resync", "product_refresh"]
    )
    assert made["created"] is True
    assert made["worker"]["roles"] == ["payload_fetch", "product_refresh"]
    assert made["worker"]["status"] == "active"
    assert made["worker"]["friendly_name"]
    # It claims two tasks; one of them is taken away from it.
    async with shop.pool.connection() as conn:
        await tasks.enqueue(conn, [NewTask(role=Role.PAYLOAD_FETCH, dispensary_id=n) for n in (1, 2)])
        kept, lost = [task.id for task in await tasks.claim(conn, "mine-1", [Role.PAYLOAD_FETCH], 2)]
        await tasks.cancel(conn, [lost])
    body = {
        "worker_id": "mine-1",
        "current_task_id": kept,
        "current_task_ids": [kept, lost],
        "active_task_count": 2,
        "max_concurrent_tasks": 5,
        "status": "active",
        "resources": {
            "memory_mb": 10.5, "memory_total_mb": 100, "memory_rss_mb": 5, "memory_percent": 10.5, "cpu_user_ms": 1,
            "cpu_system_ms": 2, "cpu_percent": 3.5, "is_backing_off": False, "backoff_reason": None,
        },
    }  # fmt: skip
    assert await _post(shop, "heartbeat", **body) == {"worker_id": "mine-1", "lost_task_ids": [lost], "commands": []}
    assert (await shop.ask(f"{BASE}/mine-1"))["heartbeat"] == body, "kept as it came"
    assert (await shop.ask(f"/api/tasks/{kept}"))["last_heartbeat_at"] is not None
    # It is told to pause, and says so.
    told = await _post(shop, "mine-1/pause", by="Ada")
    assert (told["command"]["command"], told["command"]["created_by"]) == ("pause", "Ada")
    assert told["worker"]["pending_commands"] == ["pause"]
    (command,) = (await _post(shop, "heartbeat", worker_id="mine-1"))["commands"]
    assert command == told["command"]
    beat = await _post(
        shop, "heartbeat", worker_id="mine-1", status="paused", acknowledged_commands=[command["id"], 10**15]
    )
    assert beat["commands"] == []
    now = await shop.ask(f"{BASE}/mine-1")
    assert (now["status"], now["pending_commands"]) == ("paused", [])
    assert now["commands"][0]["acknowledged_at"] is not None
    # It starts anew under its id, then leaves.
    again = await _post(shop, "register", 200, worker_id="mine-1", host="box")
    assert (again["created"], again["worker"]["roles"], again["worker"]["status"]) == (False, None, "active")
    left = await _post(shop, "deregister", worker_id="mine-1")
    assert (left["status"], left["alive"]) == ("stopped", False)
    problem = await shop.refused(f"{BASE}/heartbeat", 409, method="POST", json={"worker_id": "mine-1"})
    assert "register it again" in problem["detail"]


async def test_an_id_is_made_up_where_none_is_given(shop: Shop) -> None:
    one, two = [(await _post(shop, "register", 201, host="box"))["worker"]["worker_id"] for _ in range(2)]
    assert one != two
    assert one.startswith("box-")


# fmt: off
REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    ("register", {"host": "box", "roles": ["dance"]}, "#/roles/0", ROLES),
    ("register", {"host": "box", "roles": []}, "#/roles", "at least 1"),
    ("register", {"host": "box", "roles": "payload_fetch"}, "#/roles", "list"),
    ("register", {}, "#/host", "required"),
    ("register", {"host": ""}, "#/host", "must have at least 1 character"),
    ("register", {"host": "box", "worker_id": ""}, "#/worker_id", "at least 1"),
    ("register", {"host": "box", "worker_id": "a/b"}, "#/worker_id", "slash"),
    ("register", {"host": "box", "worker_id": "a\nb"}, "#/worker_id", "printable"),
    ("register", {"host": "box", "pid": -1}, "#/pid", "at least 1"),
    ("register", {"host": "box", "name": "x"}, "#/name", "unknown"),
    ("heartbeat", {}, "#/worker_id", "required"),
    ("heartbeat", {"worker_id": "w", "status": "asleep"}, "#/status", "active, paused, backing_off, stopping"),
    ("heartbeat", {"worker_id": "w", "current_task_ids": [0]}, "#/current_task_ids/0", "at least 1"),
    ("heartbeat", {"worker_id": "w", "current_task_ids": list(range(1, 1002))}, "#/current_task_ids", "at most 1000"),
    ("heartbeat", {"worker_id": "w", "resources": {"cpu_percent": "hot"}}, "#/resources/cpu_percent", "number"),
    ("w/pause", {"who": "me"}, "#/who", "unknown"),
]
# fmt: on


async def test_what_cannot_be_used_is_named(shop: Shop) -> None:
    await _enter(shop, "w")
    for path, body, pointer, says in REFUSED:
        problem = await shop.refused(f"{BASE}/{path}", 422, method="POST", json=body)
        (error,) = problem["errors"]
        assert (error["pointer"], says in error["detail"]) == (pointer, True), (body, error)
    assert len((await shop.ask(BASE))["items"]) == 1, "nothing half registered"


async def test_telling(shop: Shop) -> None:
    await _enter(shop, "w")
    first = await _post(shop, "w/pause")
    same = await _post(shop, "w/pause")
    assert same["command"]["id"] == first["command"]["id"], "told once"
    await _post(shop, "w/resume")
    last = await _post(shop, "w/decommission")
    assert last["worker"]["pending_commands"] == ["pause", "resume", "decommission"]
    async with shop.pool.connection() as conn:
        taken = await commands.receive(conn, "w")
        assert [str(one.command) for one in taken] == ["pause", "resume", "decommission"]
        assert await commands.receive(conn, "w") == []


async def test_nobody_to_tell(shop: Shop) -> None:
    await _enter(shop, "left", status="stopped")
    await _enter(shop, "leaving", status="stopping")
    for command in ("decommission", "pause", "resume"):
        problem = await shop.refused(f"{BASE}/nobody/{command}", 404, method="POST")
        assert "unknown worker 'nobody'" in problem["detail"]
        problem = await shop.refused(f"{BASE}/left/{command}", 409, method="POST")
        assert "stopped at" in problem["detail"]
    problem = await shop.refused(f"{BASE}/leaving/pause", 409, method="POST")
    assert "is stopping and can no longer pause" in problem["detail"]
    await _post(shop, "leaving/decommission")
    await shop.refused(f"{BASE}/nobody", 404)
    await shop.refused(f"{BASE}/heartbeat", 404, method="POST", json={"worker_id": "nobody"})
    await shop.refused(f"{BASE}/deregister", 404, method="POST", json={"worker_id": "nobody"})


async def test_old_rows_are_pruned_unless_the_queue_knows_them(shop: Shop) -> None:
    for worker_id, silent in (("old", 7200), ("young", 60), ("holding", 7200)):
        await _enter(shop, worker_id, silent=silent)
    await _enter(shop, "stopped", status="stopped", silent=7200)
    async with shop.pool.connection() as conn:
        await tasks.enqueue(conn, [NewTask(role=Role.PAYLOAD_FETCH, dispensary_id=1)])
        assert len(await tasks.claim(conn, "holding", None, 1)) == 1
        assert await registry.prune(conn, timedelta(hours=1)) == 2
        left = {one.worker_id for one in await registry.list_workers(conn, stopped=True)}
    assert left == {"young", "holding"}


async def test_a_process_that_was_seen_to_end(shop: Shop) -> None:
    began = datetime.now(UTC) - timedelta(seconds=1)
    async with shop.pool.connection() as conn:
        for worker_id, pid in (("it", 7), ("other", 8)):
            await registry.register(conn, Identity(worker_id=worker_id, friendly_name="x", host="box", pid=pid))
        await tasks.enqueue(conn, [NewTask(role=Role.PAYLOAD_FETCH, dispensary_id=n) for n in (1, 2)])
        (its,) = await tasks.claim(conn, "it", None, 1)
        (others,) = await tasks.claim(conn, "other", None, 1)
        this: dict[str, Any] = {"host": "box", "pid": 7, "pod": None, "since": began}
        for another in ({"since": began + timedelta(hours=1)}, {"pod": "Kryll"}, {"host": "crate"}, {"pid": 9}):
            assert await operations.mark_dead(conn, **{**this, **another}) == 0
        assert len(await registry.list_workers(conn)) == 2, "none of these is the process"
        assert await operations.mark_dead(conn, **this) == 1
        assert [one.worker_id for one in await registry.list_workers(conn)] == ["other"]
        (again,) = await tasks.claim(conn, "third", None, 2)
        assert (again.id, again.retry_count, again.attempt) == (its.id, 1, 2)
        assert again.error_message == "worker it died"
        assert await tasks.held_by(conn, "other") == [tasks.Held(task_id=others.id, attempt=1)]
        assert await operations.mark_dead(conn, **this) == 0
