"""One measurement: a contestant does the job, and what it kept is looked at afterwards."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import psycopg
from isal import igzip

from fetch.contestants import OURS, Contestant
from fetch.program import Failed, Program
from fetch.stage import HEADERS, Database, Platform, Size
from menuwatch.archive import files
from menuwatch.platforms.dutchie import answers

STARTUP = 120.0
PATIENCE = 300.0
"""Seconds that the warm-up and the job may take."""


class _Archive(msgspec.Struct):
    pages: list[msgspec.Raw]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where it is measured."""

    platform: Platform
    database: Database
    size: Size
    folder: Path
    core: set[int] | None


def measure(stage: Stage, who: Contestant, *, profile: Path | None = None) -> dict[str, float]:
    """One run of one contestant. Raises Failed where it cannot be measured or does not bring everything."""
    folder = stage.folder / who.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    job = _job(stage, folder, who, profile)
    since = datetime.now(UTC)
    program = Program(who, job, stage.folder, stage.core)
    try:
        program.hear("ready", STARTUP)
        platform, database = _spent(stage)
        before = stage.platform.stats()
        program.tell()
        found = program.hear("cpu", PATIENCE)
        platform_after, database_after = _spent(stage)
        after = stage.platform.stats()
    finally:
        program.end()
    _check(stage, who, job, found, since)
    pages = stage.size.stores * stage.size.pages
    asked = sum(after["requests"].values()) - sum(before["requests"].values())
    if after["direct"] != before["direct"]:
        raise Failed(f"{who.name} asked {after['direct'] - before['direct']} times without a proxy")
    shutil.rmtree(folder, ignore_errors=True)
    return {
        "pages_per_second": pages / found["wall"],
        "pages_per_cpu_second": pages / found["cpu"],
        "pages_per_cpu_second_with_database": pages / (found["cpu"] + database_after - database),
        "cpu_ms_per_page": 1000 * found["cpu"] / pages,
        "platform_cpu_ms_per_page": 1000 * (platform_after - platform) / pages,
        "database_cpu_ms_per_page": 1000 * (database_after - database) / pages,
        "core_busy": found["cpu"] / found["wall"],
        "requests_per_page": asked / pages,
    }


def _job(stage: Stage, folder: Path, who: Contestant, profile: Path | None) -> dict[str, Any]:
    menus = stage.platform.menus()
    for menu, store_id in zip(menus, stage.database.store_ids, strict=True):
        menu["store_id"] = store_id
    return {
        "menus": menus,
        "warm": menus[: stage.size.warm],
        "headers": HEADERS,
        "proxies": stage.platform.proxy_urls(),
        "ca_file": str(stage.platform.ca_file),
        "base_url": stage.platform.base_url,
        "concurrency": stage.size.concurrency,
        "folder": str(folder),
        "level": files.LEVEL,
        **who.options,
        **({"database_url": stage.database.url} if who.name == OURS else {}),
        **({"profile": str(profile)} if profile else {}),
    }


def _spent(stage: Stage) -> tuple[float, float]:
    times = stage.platform.process.cpu_times()
    return times.user + times.system, stage.database.seconds() or 0.0


def _check(stage: Stage, who: Contestant, job: dict[str, Any], found: dict[str, Any], since: datetime) -> None:
    """Everything came, and is where it should be."""
    size = stage.size
    expected = {"pages": size.stores * size.pages, "products": size.stores * size.products}
    came = {key: found[key] for key in expected}
    if came != expected:
        raise Failed(f"{who.name} brought {came} where {expected} were to be had")
    if not who.archives:
        return
    kept = _ours(stage, job, since) if who.name == OURS else _theirs(job)
    for menu in job["menus"]:
        pages = kept.get(menu["id"])
        ids = [one for body in pages or () for one in answers.inspect(bytes(body)).ids]
        if pages is None or len(pages) != size.pages or len(set(ids)) != len(ids) or len(ids) != size.products:
            raise Failed(f"{who.name} did not archive the menu of store {menu['id']} as it was served")


def _theirs(job: dict[str, Any]) -> dict[str, Any]:
    return {
        file.name.removesuffix(".json.gz"): msgspec.json.decode(
            igzip.decompress(file.read_bytes()), type=_Archive
        ).pages
        for file in Path(job["folder"]).glob("*.json.gz")
    }


def _ours(stage: Stage, job: dict[str, Any], since: datetime) -> dict[str, Any]:
    """By the database's rows, the newest of each store; each of its pages must have an attempt on record."""
    archive = files.FileArchive(Path(job["folder"]) / "storage")
    names = {menu["store_id"]: menu["id"] for menu in job["menus"]}
    kept = {}
    with psycopg.connect(stage.database.url) as conn:
        rows = conn.execute(
            "SELECT DISTINCT ON (dispensary_id) dispensary_id, path, sha256, task_id FROM raw_crawl_payloads"
            " WHERE status = 'ok' AND fetched_at >= %s ORDER BY dispensary_id, fetched_at DESC",
            [since],
        ).fetchall()
        attempts: dict[int, int] = dict(
            conn.execute(
                "SELECT task_id, count(*) FROM fetch_attempts WHERE verdict = 'ok' AND attempted_at >= %s GROUP BY task_id",
                [since],
            ).fetchall()
        )
    for store_id, path, sha256, task_id in rows:
        if attempts.get(task_id, 0) < stage.size.pages:
            raise Failed(
                f"task {task_id} has {attempts.get(task_id, 0)} attempts on record for {stage.size.pages} pages"
            )
        kept[names[store_id]] = archive.read(path, sha256).pages
    return kept
