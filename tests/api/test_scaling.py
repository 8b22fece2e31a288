"""How many workers there are, and having more or fewer: limits hold whatever runs them, and without anything it is said."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from menuwatch.config.settings import Settings
from menuwatch.db.pool import Connection, Pool
from menuwatch.scaling import service as scaling
from menuwatch.scaling.kubernetes import KubernetesScaler
from menuwatch.scaling.model import Limits, ScaleStatus
from tests.api.shop import Shop
from tests.scaling import kubernetes_api
from tests.users_fixture import bearer

REPLICAS, SCALE = "/api/workers/k8s/replicas", "/api/workers/k8s/scale"


class Rack:
    """Runs as many as it is told to, one step late: those that are ordered are there from the next look on."""

    backend, unit = "rack", "pod"

    def __init__(self) -> None:
        self.running = self.wanted = 6

    async def replicas(self, conn: Connection, *, ordering: bool = False) -> ScaleStatus:
        found = ScaleStatus(current=self.running, desired=self.wanted)
        self.running = self.wanted
        return found

    async def scale(self, conn: Connection, replicas: int) -> None:
        self.wanted = replicas


@pytest.fixture
def rack(app: FastAPI) -> Rack:
    made = Rack()
    app.state.system = dataclasses.replace(app.state.system, scaler=made)
    return made


async def test_without_anything_that_runs_workers_it_says_what_is_missing(shop: Shop) -> None:
    answer = await shop.http.get(REPLICAS)
    assert answer.status_code == 200
    body = answer.json()
    assert {name: body[name] for name in ("current", "desired", "low", "high", "backend", "unit")} == {
        "current": 0, "desired": None, "low": 5, "high": 15, "backend": "none", "unit": "worker",
    }  # fmt: skip
    assert "menuwatch supervisor" in body["why_not"]
    refused = await shop.http.post(SCALE, json={"replicas": 8})
    assert refused.status_code == 409
    assert "menuwatch supervisor" in refused.json()["detail"]


async def test_living_workers_are_counted(shop: Shop, pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO worker_registry (worker_id, friendly_name, host, status, last_heartbeat_at) VALUES "
            "('a', 'Ada', 'h', 'active', now()), ('b', 'Bruno', 'h', 'paused', now()), "
            "('c', 'Cleo', 'h', 'active', now() - interval '3 minutes'), ('d', 'Dario', 'h', 'stopped', now())"
        )
    assert (await shop.http.get(REPLICAS)).json()["current"] == 2


@pytest.mark.parametrize("wanted", [-1, 0, 4, 16, 1000, 2**40])
async def test_numbers_outside_the_limits_are_refused_with_the_limits(shop: Shop, rack: Rack, wanted: int) -> None:
    answer = await shop.http.post(SCALE, json={"replicas": wanted})
    assert answer.status_code == 400, answer.text
    (error,) = answer.json()["errors"]
    assert error["pointer"] == "#/replicas"
    assert "allowed are 5 to 15" in error["detail"]
    assert rack.wanted == 6


@pytest.mark.parametrize(
    "body", [{}, {"replicas": "many"}, {"replicas": 7.5}, {"replicas": None}, {"replicas": 7, "x": 1}]
)
async def test_what_is_no_number_is_refused(shop: Shop, rack: Rack, body: dict[str, object]) -> None:
    assert (await shop.http.post(SCALE, json=body)).status_code == 422
    assert rack.wanted == 6


async def test_scaling_is_ordered_and_recorded(shop: Shop, rack: Rack, pool: Pool) -> None:
    answer = await shop.http.post(SCALE, json={"replicas": 15})
    assert answer.status_code == 200
    assert answer.json() == {
        "current": 6, "desired": 15, "low": 5, "high": 15, "backend": "rack", "unit": "pod", "doing": None, "why_not": None,
    }  # fmt: skip
    assert (await shop.http.get(REPLICAS)).json()["current"] == 15
    async with pool.connection() as conn:
        row = await (await conn.execute("SELECT details FROM audit_log WHERE action = 'workers_scaled'")).fetchone()
    assert row is not None
    assert row[0] == {"backend": "rack", "was": 6, "running": 6, "wanted": 15}


async def test_kubernetes_is_scaled_by_the_same_and_says_what_is_in_the_way(
    shop: Shop, app: FastAPI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with kubernetes_api.serving(tmp_path) as (kept, _):
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        scaler = KubernetesScaler(Settings())
        app.state.system = dataclasses.replace(app.state.system, scaler=scaler)
        assert (await shop.http.get(REPLICAS)).json() == {
            "current": 8, "desired": 8, "low": 5, "high": 15, "backend": "kubernetes", "unit": "pod", "doing": None, "why_not": None,
        }  # fmt: skip
        assert (await shop.http.post(SCALE, json={"replicas": 1000})).status_code == 400
        kept.rules = [{**kept.rules[0], "verbs": ["get"]}]
        refused = await shop.http.post(SCALE, json={"replicas": 9})
        assert refused.status_code == 409
        assert refused.headers["content-type"] == "application/problem+json"
        assert "may not patch statefulsets/scale" in refused.json()["detail"]
        kept.rules = kubernetes_api.FREE
        assert (await shop.http.post(SCALE, json={"replicas": 9})).json()["desired"] == 9


async def test_a_viewer_may_look_and_not_scale(app: FastAPI, pool: Pool, rack: Rack) -> None:
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://menuwatch", headers=await bearer(pool, role="viewer")
    ) as http:
        assert (await http.get(REPLICAS)).status_code == 200
        assert (await http.post(SCALE, json={"replicas": 8})).status_code == 403
    assert rack.wanted == 6


@pytest.mark.parametrize(
    ("low", "high", "limits"),
    [
        (None, None, Limits(5, 15)),
        (20, None, Limits(20, 20)),
        (None, 3, Limits(3, 3)),
        (2, None, Limits(2, 15)),
        (None, 40, Limits(5, 40)),
        (1, 4, Limits(1, 4)),
    ],
)
def test_one_limit_that_is_set_alone_leaves_something_to_order(
    low: int | None, high: int | None, limits: Limits
) -> None:
    assert scaling.limits(Settings(workers_min=low, workers_max=high)) == limits
