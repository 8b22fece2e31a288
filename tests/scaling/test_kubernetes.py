"""Pods of a StatefulSet, scaled: against an API server on a real socket that holds the role of the manifests against us."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from menuwatch.config.settings import Settings
from menuwatch.core.errors import Conflict, InvalidField
from menuwatch.db.pool import Pool, open_pool
from menuwatch.queue.model import NewTask, Role, Task
from menuwatch.queue.outcome import Done, Outcome
from menuwatch.scaling import kubernetes
from menuwatch.scaling import service as scaling
from menuwatch.scaling.kubernetes import KubernetesScaler, PodReconciler
from menuwatch.scaling.model import ReplicaCount
from menuwatch.workers.engine.config import WorkerConfig
from menuwatch.workers.engine.handler import TaskContext
from menuwatch.workers.engine.worker import Worker
from tests.conftest import ROOT
from tests.scaling import kubernetes_api
from tests.scaling.kubernetes_api import WHOLE, ApiServer
from tests.workers.waiting import look, put, until

SETTINGS = Settings(scaler="kubernetes")


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    with kubernetes_api.serving(tmp_path) as (kept, _):
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        kept.rules = role()
        yield kept


def role() -> list[dict[str, object]]:
    """The rules that the manifests give the server."""
    documents = yaml.safe_load_all((ROOT / "deploy" / "base" / "rbac.yaml").read_text(encoding="utf-8"))
    (found,) = [one for one in documents if one["kind"] == "Role"]
    return found["rules"]


@pytest.fixture
def scaler(cluster: ApiServer) -> KubernetesScaler:
    return KubernetesScaler(SETTINGS)


async def stand(pool: Pool, scaler: KubernetesScaler) -> ReplicaCount:
    async with pool.connection() as conn:
        return await scaling.replicas(conn, scaler, SETTINGS)


async def order(pool: Pool, scaler: KubernetesScaler, wanted: int, settings: Settings = SETTINGS) -> ReplicaCount:
    async with pool.connection() as conn, conn.transaction():
        return await scaling.scale(conn, scaler, settings, wanted)


async def enter(pool: Pool, *hosts: str, status: str = "active", ago: str = "0") -> None:
    async with pool.connection() as conn:
        for host in hosts:
            await conn.execute(
                "INSERT INTO worker_registry (worker_id, friendly_name, pod, host, status, last_heartbeat_at) "
                "VALUES (%s, 'Ada', %s, %s, %s, now() - %s::interval)",
                [f"of-{host}", host, host, status, f"{ago} minutes"],
            )


async def decommissioned(pool: Pool) -> set[str]:
    async with pool.connection() as conn:
        rows = await (await conn.execute("SELECT worker_id, command FROM worker_commands")).fetchall()
    assert {command for _, command in rows} <= {"decommission"}
    return {worker for worker, _ in rows}


async def ended(pool: Pool, host: str) -> None:
    async with pool.connection() as conn:
        await conn.execute("UPDATE worker_registry SET status = 'stopped' WHERE host = %s", [host])


async def test_more_pods_are_patched_at_the_next_look(pool: Pool, cluster: ApiServer, scaler: KubernetesScaler) -> None:
    cluster.wanted = cluster.pods = cluster.ready = 6
    found = await order(pool, scaler, 9)
    assert (found.current, found.desired, found.doing) == (6, 9, "3 starting")
    assert (found.low, found.high, found.backend, found.unit) == (5, 15, "kubernetes", "pod")
    assert cluster.wanted == 6, "it was tried, not done: the order is not committed yet"
    assert await scaler.carry_out(pool)
    assert cluster.wanted == 9
    assert await scaler.carry_out(pool), "it looks whether that is so"
    assert not await scaler.carry_out(pool), "nothing is ordered any more"
    cluster.settle()
    found = await stand(pool, scaler)
    assert (found.current, found.desired, found.doing) == (9, 9, None)
    assert cluster.patches() == [("fieldManager=menuwatch&dryRun=All", 200), ("fieldManager=menuwatch", 200)]
    assert {(verb, path) for verb, path, _, _ in cluster.asked} == {("GET", WHOLE), ("PATCH", f"{WHOLE}/scale")}


async def test_fewer_pods_let_their_workers_finish_first(
    pool: Pool, cluster: ApiServer, scaler: KubernetesScaler
) -> None:
    staying = ("scraper-worker-4", "scraper-worker-5", "a-laptop", "other-7", "scraper-worker-70")
    await enter(pool, *staying, "scraper-worker-6", "scraper-worker-7")
    found = await order(pool, scaler, 6)
    assert (found.current, found.desired) == (8, 6)
    assert found.doing == "2 pods leave after 2 workers finish their tasks (0 tasks)"
    await scaler.carry_out(pool)
    assert await decommissioned(pool) == {"of-scraper-worker-6", "of-scraper-worker-7"}, (
        "only the highest ordinals are removed"
    )
    await ended(pool, "scraper-worker-6")
    await scaler.carry_out(pool)
    assert cluster.wanted == 8, "one of them still works"
    await ended(pool, "scraper-worker-7")
    await scaler.carry_out(pool)
    assert cluster.wanted == 6
    await scaler.carry_out(pool)
    found = await stand(pool, scaler)
    assert (found.current, found.desired, found.doing) == (8, 6, "2 pods leave"), "the order stands until they are gone"
    cluster.settle()
    await scaler.carry_out(pool)
    assert not await scaler.carry_out(pool)
    assert len(await decommissioned(pool)) == 2


async def test_a_task_is_not_cut_and_another_server_finishes_the_order(
    pool: Pool, database_url: str, cluster: ApiServer, scaler: KubernetesScaler, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end, ran = asyncio.Event(), 0

    async def handler(task: Task, ctx: TaskContext) -> Outcome:
        nonlocal ran
        ran += 1
        await may_end.wait()
        return Done()

    monkeypatch.setattr(socket, "gethostname", lambda: "scraper-worker-7")  # the pod that this process is
    worker = Worker(pool, database_url, {Role.PAYLOAD_FETCH: handler}, WorkerConfig(heartbeat_interval=0.2, slots=2))
    run = asyncio.create_task(worker.run())
    (task,) = await put(pool, NewTask(role=Role.PAYLOAD_FETCH))

    async def runs() -> bool:
        return ran == 1

    await until(runs)
    await order(pool, scaler, 7)
    await scaler.carry_out(pool)

    async def stops() -> bool:
        async with pool.connection() as conn:
            rows = await (await conn.execute("SELECT status FROM worker_registry")).fetchall()
        return rows == [("stopping",)]

    await until(stops)
    (later,) = await put(pool, NewTask(role=Role.PAYLOAD_FETCH))
    # The server that took the request is gone; another one finds it.
    async with open_pool(database_url) as others:
        another = KubernetesScaler(SETTINGS)
        await another.carry_out(others)
        found = await stand(others, another)
        assert cluster.wanted == 8
        assert found.doing == "1 pod leaves after 1 worker finishes its tasks (1 task)"
        may_end.set()
        await asyncio.wait_for(run, 10)
        await another.carry_out(others)
    assert cluster.wanted == 7
    assert str((await look(pool, task)).status) == "completed"
    assert str((await look(pool, later)).status) == "pending", "who leaves begins nothing"
    assert ran == 1


async def test_two_servers_do_not_both_carry_it_out(pool: Pool, cluster: ApiServer, scaler: KubernetesScaler) -> None:
    await order(pool, scaler, 9)
    await asyncio.gather(*(KubernetesScaler(SETTINGS).carry_out(pool) for _ in range(4)))
    assert [status for query, status in cluster.patches() if "dryRun" not in query] == [200]


async def test_servers_go_on_with_it_when_the_api_server_is_back(
    pool: Pool, cluster: ApiServer, scaler: KubernetesScaler
) -> None:
    await order(pool, scaler, 9)
    cluster.broken = 503
    loop = PodReconciler(pool, scaler, interval=0.02)
    run = asyncio.create_task(loop.run())

    async def hindered() -> bool:
        async with pool.connection() as conn:
            return "etcdserver" in ((await kubernetes.get_request(conn)).error or "")

    async def finished() -> bool:
        async with pool.connection() as conn:
            return (await kubernetes.get_request(conn)).desired is None

    await until(hindered)
    cluster.broken = None
    await until(finished)
    loop.stop()
    await run
    assert cluster.wanted == 9


async def test_a_change_between_looking_and_doing_is_looked_at_again(
    pool: Pool, cluster: ApiServer, scaler: KubernetesScaler
) -> None:
    await order(pool, scaler, 6)
    changes = iter([lambda: cluster.scale(10)])
    cluster.before_patch = lambda: next(changes, lambda: None)()
    await scaler.carry_out(pool)
    assert cluster.patches()[-1] == ("fieldManager=menuwatch", 409)
    assert cluster.wanted == 10
    await enter(pool, "scraper-worker-9")
    await scaler.carry_out(pool)
    assert await decommissioned(pool) == {"of-scraper-worker-9"}, "its pod is removed as well, after its tasks"
    await ended(pool, "scraper-worker-9")
    await scaler.carry_out(pool)
    assert cluster.wanted == 6


async def test_silent_workers_hold_nothing_up_and_a_later_order_counts(
    pool: Pool, cluster: ApiServer, scaler: KubernetesScaler
) -> None:
    await enter(pool, "scraper-worker-6", ago="3")
    await enter(pool, "scraper-worker-7")
    await order(pool, scaler, 5)
    await scaler.carry_out(pool)
    assert cluster.wanted == 8
    found = await order(pool, scaler, 8)
    assert (found.desired, found.doing) == (8, None)
    await scaler.carry_out(pool)
    assert not await scaler.carry_out(pool)
    assert cluster.wanted == 8
    await order(pool, scaler, 7)
    await ended(pool, "scraper-worker-7")
    await scaler.carry_out(pool)
    assert cluster.wanted == 7


@pytest.mark.parametrize("wanted", [-1, 0, 4, 16, 1000])
async def test_limits(pool: Pool, cluster: ApiServer, scaler: KubernetesScaler, wanted: int) -> None:
    with pytest.raises(InvalidField, match="allowed are 5 to 15"):
        await order(pool, scaler, wanted)
    assert cluster.patches() == []
    if wanted == 4:
        await order(pool, scaler, wanted, Settings(scaler="kubernetes", workers_min=2, workers_max=4))
        assert cluster.patches() == [("fieldManager=menuwatch&dryRun=All", 200)]


def only(*verbs: tuple[str, str]) -> list[dict[str, list[str]]]:
    return [{"apiGroups": ["apps"], "resources": [resource], "verbs": [verb]} for verb, resource in verbs]


async def test_missing_rights_are_named(pool: Pool, cluster: ApiServer, scaler: KubernetesScaler) -> None:
    cluster.rules = only(("get", "statefulsets"), ("get", "statefulsets/scale"), ("patch", "statefulsets"))
    assert (await stand(pool, scaler)).why_not is None
    with pytest.raises(
        Conflict, match=r"may not patch statefulsets/scale \(apps\) in the namespace dispensary-scraper"
    ):
        await order(pool, scaler, 9)
    assert not await scaler.carry_out(pool), "nothing was ordered"
    cluster.rules = only(("patch", "statefulsets/scale"))
    await enter(pool, "scraper-worker-1", "scraper-worker-2")
    found = await stand(pool, scaler)
    assert found.why_not is not None
    assert "may not get statefulsets (apps)" in found.why_not
    assert "deploy/base/rbac.yaml" in found.why_not
    assert (found.current, found.desired) == (2, None), "pods are counted by their workers then"


async def test_rights_taken_away_meanwhile_show_and_the_order_waits(
    pool: Pool, cluster: ApiServer, scaler: KubernetesScaler
) -> None:
    await order(pool, scaler, 9)
    cluster.rules = only(("get", "statefulsets"))
    await scaler.carry_out(pool)
    doing = (await stand(pool, scaler)).doing
    assert doing is not None
    assert doing.startswith("1 starting; permission denied")
    cluster.rules = role()
    await scaler.carry_out(pool)
    assert cluster.wanted == 9
    assert (await stand(pool, scaler)).doing == "1 starting"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"K8S_WORKER_STATEFULSET": "none"}, "StatefulSet dispensary-scraper/none not found: check K8S_NAMESPACE"),
        ({"token": "another"}, "the token is wrong or expired"),
        ({"broken": 503}, "(503): etcdserver: request timed out"),
        ({"gone": 1}, "is unreachable"),
        ({"untrusted": 1}, "certificate verify failed"),
        ({"KUBECONFIG": "/nowhere/config"}, "not in a cluster (no service account's token is mounted) and has no kubeconfig"),
        ({"text": "{}"}, "can be read (KeyError: 'clusters')"),
        ({"text": "a: [b"}, "can be read (ParserError"),
    ],
    ids=str,
)  # fmt: skip
async def test_what_is_wrong_is_said(
    pool: Pool, cluster: ApiServer, tmp_path: Path, change: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.rules = kubernetes_api.FREE
    cluster.broken = change.get("broken")  # type: ignore[assignment]
    config = kubernetes_api.kubeconfig(cluster.url, tmp_path / "account" / "ca.crt")
    if "token" in change:
        config["users"][0]["user"]["token"] = change["token"]
    if "gone" in change:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{unused.getsockname()[1]}"
    if "untrusted" in change:
        del config["clusters"][0]["cluster"]["certificate-authority"]
    (tmp_path / "kubeconfig").write_text(change.get("text") or yaml.safe_dump(config))
    if "KUBECONFIG" in change:
        monkeypatch.setenv("KUBECONFIG", change["KUBECONFIG"])
    environment = {name: value for name, value in change.items() if name.startswith("K8S_")}
    scaler = KubernetesScaler(Settings.from_env(environment, scaler="kubernetes"))
    found = await stand(pool, scaler)
    assert found.why_not is not None
    assert said in found.why_not
    assert kubernetes_api.TOKEN not in found.why_not
    with pytest.raises(Conflict):
        await order(pool, scaler, 9)
    async with pool.connection() as conn:
        assert (await kubernetes.get_request(conn)).desired is None


async def test_in_a_cluster_the_service_account_is_used_and_its_token_may_change(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with kubernetes_api.serving(tmp_path) as (kept, account):
        where = urlsplit(kept.url)
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", str(where.hostname))
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(where.port))
        monkeypatch.setenv("KUBECONFIG", "/nowhere/config")
        scaler = KubernetesScaler(SETTINGS, account=account)
        assert (await stand(pool, scaler)).current == 8
        monkeypatch.setattr(kubernetes_api, "TOKEN", "the-next-one")
        assert (await stand(pool, scaler)).why_not is not None
        (account / "token").write_text("the-next-one")
        await order(pool, scaler, 9)


def test_who_scales(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert not kubernetes.runs_workers(Settings())
    assert kubernetes.runs_workers(SETTINGS)
    monkeypatch.setattr(kubernetes, "ACCOUNT", tmp_path)
    (tmp_path / "token").write_text("x")
    assert kubernetes.runs_workers(Settings())
    assert not kubernetes.runs_workers(Settings(scaler="local"))


async def test_a_pod_that_goes_begins_nothing_when_it_is_started_again(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    async with pool.connection() as conn:
        await kubernetes.create_request(conn, 6)
        for name, expected in (("scraper-worker-5", False), ("scraper-worker-6", True), ("scraper-worker-x", False)):
            assert await kubernetes.is_removed(conn, Settings(pod_name=name)) is expected
    command = [sys.executable, "-m", "menuwatch.cli.main", "worker", "--workers", "2"]
    environment = {**os.environ, "DATABASE_URL": database_url, "MENUWATCH_HOME": str(tmp_path), "LOG_FORMAT": "json"}
    process = await asyncio.create_subprocess_exec(
        *command, env={**environment, "POD_NAME": "scraper-worker-6"}, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    assert process.stderr is not None
    async with asyncio.timeout(20):
        async for line in process.stderr:
            if b"pod_stands_by" in line:
                break
        process.send_signal(signal.SIGTERM)
        rest = await process.stderr.read()
        assert await process.wait() == 0
    assert b"pool_worker_started" not in rest
