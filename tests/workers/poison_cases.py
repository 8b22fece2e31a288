"""One item that raises among items that do not, for each loop that works through items. Rows and refusals are the database's own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Any

from menuwatch.alerts import store as alerts
from menuwatch.alerts.delivery_worker import AlertDeliverer
from menuwatch.config.settings import Settings
from menuwatch.core.backoff import Backoff
from menuwatch.core.clock import ManualClock
from menuwatch.core.http import Response
from menuwatch.db.loop import Loop
from menuwatch.db.pool import Pool
from menuwatch.fetch.probe import ProbeResponse
from menuwatch.images.downloads import DownloadPolicy, ImageDownloads
from menuwatch.images.files import ImageFiles
from menuwatch.matching.engine import ProductMatcher, match_all
from menuwatch.matching.locations.engine import LocationMatcher
from menuwatch.ops.janitor import Janitor
from menuwatch.proxies import service as proxies
from menuwatch.proxies.health import ProxyOutcome
from menuwatch.proxies.prober import Prober
from menuwatch.queue import store as tasks
from menuwatch.queue.model import NewTask, Role, Task
from menuwatch.queue.outcome import Done, Outcome
from menuwatch.queue.schedules.scheduler import Scheduler
from menuwatch.scaling import kubernetes
from menuwatch.scaling.kubernetes import PodReconciler
from menuwatch.search_crawl.providers.identities import CrawlFetcher
from menuwatch.search_crawl.result_processor import ResultProcessor
from menuwatch.search_crawl.submitter import CrawlSubmitter
from menuwatch.storefront.indexer import StorefrontIndexer
from menuwatch.storefront.watches import service as watch_service
from menuwatch.storefront.watches import store as watches
from menuwatch.storefront.watches.model import NewWatch
from menuwatch.storefront.watches.sender import WatchSender
from menuwatch.visitors.anonymous_marks import Kind, Visit
from menuwatch.web.visit_log import VisitLog
from menuwatch.workers import commands, registry
from menuwatch.workers.commands import Command
from menuwatch.workers.engine.claim_gate import ClaimGate
from menuwatch.workers.engine.command_loop import CommandLoop
from menuwatch.workers.engine.log_writer import LogWriter
from menuwatch.workers.engine.metrics import WorkerMetrics
from menuwatch.workers.engine.producer import Producer
from menuwatch.workers.engine.reaper import Reaper
from tests import market
from tests.alerts.rule_factory import add_rule
from tests.alerts.webhook_receiver import receiving
from tests.images.image_factory import encoded, halves
from tests.proxy_reports import befalls
from tests.site.mailbox import mailbox
from tests.workers.poison_context import NOW, Found, World
from tests.workers.poison_crawl_items import fetches, orders_of_pages, pages
from tests.workers.waiting import put


async def images(world: World) -> Found:
    pictures = {f"/{n}.png": encoded(halves(60 + n, 40), ".png") for n in range(3)}
    asked: list[str] = []

    class Session:
        async def request(self, method: str, url: str, **_: Any) -> Response:
            asked.append(url)
            return Response(
                status=200, headers={}, body=pictures[url.removeprefix("https://img.test")], url=url, elapsed_ms=1.0
            )

    @asynccontextmanager
    async def session(**_: Any) -> Any:
        yield Session()

    await world.refuse("images", "INSERT", "NEW.width = 60")
    for n, path in enumerate(pictures):
        await world.rows(
            "INSERT INTO image_references (brand, url) VALUES (%s, %s)", f"b{n}", f"https://img.test{path}"
        )
    manner = DownloadPolicy(hosts=("img.test",), tries=3, backoff=Backoff(base=600.0))
    loop = ImageDownloads(world.pool, ImageFiles(world.folder), session, manner)
    query = "SELECT id, status, attempts, due_at > now() + interval '4 minutes', error FROM image_urls ORDER BY url"
    await loop.step()
    poisoned, *others = await world.rows(query)
    assert [one[1:4] for one in others] == [("stored", 0, None)] * 2
    assert poisoned[1:] == ("waiting", 1, True, "RaiseException")
    for _ in range(4):
        await world.rows("UPDATE image_urls SET due_at = now() WHERE due_at IS NOT NULL")
        await loop.step()
    assert (await world.rows(query))[0][1:4] == ("failed", 3, None)
    assert asked.count("https://img.test/0.png") == 3
    return [("image_source", poisoned[0])]


async def messages(world: World) -> Found:
    clock = ManualClock(NOW)
    settings = Settings(alert_allow_private=1, alert_attempts=2, alert_retry_seconds=60)
    async with receiving() as receiver, world.pool.connection() as conn:
        rules = [await add_rule(conn, name, "operations", "proxies_down") for name in ("broken", "good")]
        for rule in rules:
            hook = {"kind": "webhook", "address": receiver.url(), "secret": "s" * 16, "shown": "…"}
            await alerts.set_channels(
                conn, rule.id, [hook, {**hook, "kind": "apprise", "address": "json://127.0.0.1:1"}]
            )
        for rule, facts in zip(rules, ("[]", '{"firing": true, "detail": "3 are down"}'), strict=True):
            await world.rows(
                "INSERT INTO alert_events (rule_id, source, fired_at, due_at, facts) VALUES (%s, 'x', %s, %s, %s)",
                *(rule.id, NOW, NOW, facts),
            )
        notice = (await alerts.channels(conn, [rules[1].id]))[1]
        poisoned = await alerts.add_delivery(conn, notice, {}, NOW)
        deliverer = AlertDeliverer(world.pool, settings, clock=clock)
        await deliverer.step()
        ((status, attempts, later, error),) = await world.rows(
            "SELECT status, attempts, next_attempt_at > %s, error FROM alert_deliveries WHERE id = %s", NOW, poisoned
        )
        assert (status, attempts, later, error) == ("waiting", 1, True, "sending it failed: KeyError")
        for _ in range(3):
            clock.advance(timedelta(hours=7))
            await deliverer.step()
    events = await world.rows(
        "SELECT rule_id, channel_id IS NULL, status, attempts, error FROM alert_deliveries ORDER BY id"
    )
    assert [one[:4] for one in events if one[1]] == [(rules[0].id, True, "failed", 0)]
    assert [one["events"][0]["detail"] for one in (got.json() for got in receiver.got)] == ["3 are down"]
    assert (rules[1].id, False, "failed", 2, "sending it failed: KeyError") in events
    return [("alert_rule", rules[0].id), ("alert_delivery", poisoned)]


async def duties(world: World) -> Found:
    janitor = Janitor(world.pool, clock=ManualClock(datetime(1, 1, 2, tzinfo=UTC)))
    await janitor.step()
    done = await world.rows("SELECT job, error FROM maintenance_runs WHERE succeeded_at IS NOT NULL ORDER BY job")
    assert {("names", None), ("totals", None), ("horizon", None), ("statistics", None)} <= set(done)
    failed = await world.rows(
        "SELECT job, error, attempted_at IS NOT NULL FROM maintenance_runs WHERE succeeded_at IS NULL"
    )
    assert ("history", "OverflowError: date value out of range", True) in failed
    return [("duty", duty) for duty, *_ in failed]


async def upkeep(world: World) -> Found:
    (task_id,) = await put(world.pool, NewTask(role=Role.PAYLOAD_FETCH, dispensary_id=1))
    async with world.pool.connection() as conn:
        await tasks.claim(conn, "w", None, 1)
        await conn.execute("UPDATE task_live SET claimed_at = now() - interval '1 hour' WHERE id = %s", [task_id])
    await world.refuse("task_live", "UPDATE", "OLD.worker_id = 'w'")
    partitions = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'fetch_attempts'::regclass"
    before = await world.rows(partitions)
    ((last,),) = await world.rows(
        "SELECT max(inhrelid::regclass::text) FROM pg_inherits WHERE inhparent = 'fetch_attempts'::regclass"
    )
    await world.rows(f"DROP TABLE {last}")
    await Reaper(world.pool, stale_after=timedelta(minutes=10)).step()
    assert await world.rows(partitions) == before
    return [("duty", "recovery")]


async def probes(world: World) -> Found:
    numbers = [(await proxies.add(world.pool, f"http://127.0.0.{n}:1")).id for n in (1, 2)]
    async with world.pool.connection() as conn:
        for number in numbers:
            for _ in range(5):
                await befalls(conn, number, ProxyOutcome.FAULT, error="down")
        await conn.execute("UPDATE proxies SET probe_at = now()")

    async def permit(_: str) -> None:
        return None

    async def record(probed: ProbeResponse) -> None:
        if probed.proxy_id == numbers[0]:
            raise ZeroDivisionError("http://me:password@proxy.test")

    await Prober(world.pool, Settings(fetch_timeout_seconds=1), permit=permit, record=record).step()
    found = await world.rows("SELECT probe_failures, probe_at > now(), last_error FROM proxies ORDER BY id")
    assert found[0] == (1, True, "ZeroDivisionError")
    assert found[1][:2] == (1, True)
    assert found[1][2] != "down"
    return [("proxy", numbers[0])]


async def firings(world: World) -> Found:
    for name, at in (("unreadable", "0044-03-15 12:00:00+00 BC"), ("good", NOW)):
        await world.rows(
            "INSERT INTO task_schedules (name, role, interval_hours, next_run_at) VALUES (%s, 'analytics_refresh', 4, %s)",
            *(name, at),
        )
    await Scheduler(world.pool, clock=ManualClock(NOW)).step()
    poisoned, good = await world.rows("SELECT id, last_run_at, last_error FROM task_schedules ORDER BY id")
    assert good[1:] == (NOW, None)
    assert poisoned[1] is None
    assert "DataError" in poisoned[2]
    return [("schedule", poisoned[0])]


async def pods(world: World) -> Found:
    class Broken:
        async def carry_out(self, pool: Pool) -> bool:
            raise ZeroDivisionError

    async with world.pool.connection() as conn:
        await kubernetes.create_request(conn, 3)
        assert await PodReconciler(world.pool, Broken()).step() == 10.0  # type: ignore[arg-type]
        assert (await kubernetes.get_request(conn)).error == "carrying it out failed: ZeroDivisionError"
    return [("pod_order", 1)]


async def visits(world: World) -> Found:
    await world.rows("ALTER TABLE visitor_pages ADD CHECK (page <> 'poison')")
    log = VisitLog(world.pool, clock=ManualClock(NOW))
    for page in ("a", "b", "poison", "c", "d"):
        log.offer(Visit(at=NOW, kind=Kind.PRODUCT, page=page, address=ip_address("192.0.2.1"), agent="x"))
    await log.step()
    assert await world.rows("SELECT page, views FROM visitor_pages ORDER BY page") == [(page, 1) for page in "abcd"]
    assert (log.waiting, log.noted("counted"), log.noted("lost")) == (0, 4, 1)
    return [("visit", "poison")]


async def menus(world: World) -> Found:
    ids = []
    async with world.pool.connection() as conn:
        await conn.execute("SELECT ensure_product_history_partition(%s)", [market.START])
        for n, name in enumerate(("poisoned", "partly", "good")):
            ids.append(await market.add_store(conn, name))
            items = [market.item(f"{name}-{m}", name=f"Thing {m}", price=str(10 + n * 10 + m)) for m in range(5)]
            await market.crawl(conn, ids[-1], n, items)
    await world.refuse("storefront_stores", "INSERT OR UPDATE", f"NEW.dispensary_id = {ids[0]}")
    await world.rows(
        "CREATE TRIGGER refuse BEFORE INSERT ON storefront_offers FOR EACH ROW WHEN (NEW.price = 2200) EXECUTE FUNCTION refuse()"
    )
    ((product,),) = await world.rows("SELECT id FROM catalog_products WHERE provider_product_id = 'partly-2'")
    await match_all(world.pool)
    indexer = StorefrontIndexer(world.pool, watcher=watch_service.evaluate_store)
    for _ in range(3):
        await indexer.step()
    offers = "SELECT store_id, count(*) FROM storefront_offers GROUP BY 1 ORDER BY 1"
    assert await world.rows(offers) == [(ids[1], 4), (ids[2], 5)]
    return [("store", ids[0]), ("product", product)]


async def matches(world: World) -> Found:
    ids = []
    async with world.pool.connection() as conn:
        for n, name in enumerate(("broken", "partly", "good")):
            ids.append(await market.add_store(conn, name))
            items = [market.item(f"{name}-{m}", name=f"Thing {name} {m}", brand="Acme") for m in range(5)]
            await market.crawl(conn, ids[-1], n, items)
    await world.refuse("match_stores", "INSERT OR UPDATE", f"NEW.dispensary_id = {ids[0]}")
    ((product,),) = await world.rows("SELECT id FROM catalog_products WHERE provider_product_id = 'partly-2'")
    await world.rows(
        "CREATE TRIGGER refuse BEFORE INSERT ON product_matches FOR EACH ROW"
        f" WHEN (NEW.product_id = {product}) EXECUTE FUNCTION refuse()"
    )
    matcher = ProductMatcher(world.pool)
    for _ in range(3):
        await matcher.step()
    matched = "SELECT dispensary_id, count(canonical_product_id) FROM product_matches GROUP BY 1 ORDER BY 1"
    assert await world.rows(matched) == [(ids[1], 4), (ids[2], 5)]
    return [("store", ids[0]), ("product", product)]


async def shops(world: World) -> Found:
    async with world.pool.connection() as conn:
        ids = [await market.add_store(conn, name) for name in ("north", "south", "east")]
    await world.refuse("location_links", "INSERT OR UPDATE", f"NEW.dispensary_id = {ids[1]}")
    matcher = LocationMatcher(world.pool)
    for _ in range(2):
        await matcher.step()
    linked = await world.rows("SELECT dispensary_id FROM location_links ORDER BY 1")
    assert linked == [(ids[0],), (ids[2],)]
    return [("location", ids[1])]


async def mails(world: World) -> Found:
    clock, made = ManualClock(NOW), []
    async with mailbox() as box, world.pool.connection() as conn:
        ((item,),) = await world.rows(
            "INSERT INTO storefront_items (id, name, category, first_seen)"
            " VALUES (1, 'Thing', 'flower', 0) RETURNING id"
        )
        for n, facts in enumerate(("{}", '{"price": 5, "before": 7}')):
            address, token = f"a{n}@example.com", f"token-{n}"
            watch = await watches.insert(
                conn,
                NewWatch(item_id=item, condition="any_drop", channel="mail"),
                currency="USD",
                token_hash=watches.hash_of(token),
                phase="armed",
                reference=None,
                now=NOW,
                confirmed=False,
                address=address,
                token=token,
                address_mark=await watches.mark_of(conn, address),
            )
            await watches.confirm(conn, watch, phase="armed", reference=None, now=NOW)
            await watches.add_events(conn, {watch: facts}, now=NOW)
            made.append(watch)
        settings = Settings(mail_url=box.url, alert_attempts=2, alert_retry_seconds=60)
        mailer = WatchSender(world.pool, settings, clock=clock)
        await mailer.step()
        query = "SELECT attempts, due_at > %s, due_at IS NULL FROM price_watches ORDER BY id"
        assert await world.rows(query, NOW) == [(1, True, False), (0, None, True)]
        assert box.to == ["a1@example.com"]
        for _ in range(3):
            clock.advance(timedelta(hours=7))
            await mailer.step()
        assert (await world.rows(query, NOW))[0] == (2, None, True)
    return [("price_watch", made[0])]


async def orders_of_workers(world: World) -> Found:
    def leave() -> None:
        raise ZeroDivisionError

    worker, gate = world.make({}), ClaimGate()
    async with world.pool.connection() as conn:
        await registry.register(conn, worker.identity)
        broken = await commands.send(conn, worker.worker_id, Command.DECOMMISSION)
        await commands.send(conn, worker.worker_id, Command.PAUSE)
    loop = CommandLoop(world.pool, gate, worker_id=worker.worker_id, on_change=lambda: None, on_decommission=leave)
    await loop.step()
    assert gate.status == "paused"
    assert await world.rows("SELECT FROM worker_commands WHERE acknowledged_at IS NULL") == []
    return [("worker_command", broken.id)]


async def work(world: World) -> Found:
    async def handler(task: Task, ctx: object) -> Outcome:
        if task.dispensary_id == 1:
            raise ZeroDivisionError
        return Done()

    new = [NewTask(role=Role.PAYLOAD_FETCH, dispensary_id=n, max_retries=1) for n in (1, 2, 3)]
    await put(world.pool, *new)
    await world.make({Role.PAYLOAD_FETCH: handler}).run_until_idle(timeout=20)
    ended = await world.rows("SELECT status, retry_count, error_message FROM worker_tasks ORDER BY dispensary_id")
    assert ended[0] == ("failed", 1, "ZeroDivisionError:")
    assert [one[0] for one in ended[1:]] == ["completed"] * 2
    return []  # the executor's own lines name its tasks


async def lines(world: World) -> Found:
    writer = LogWriter(world.pool, worker_id="w-1", clock=ManualClock(NOW), measures=WorkerMetrics())
    for n in range(7):
        writer.buffer.add({"event": "said", "level": "info", "action": f"line_{n}"})
    await world.refuse("log_lines", "INSERT", "NEW.action = 'line_3'")
    await writer.step()
    await writer.step()
    stored = await world.rows("SELECT action, dropped FROM log_lines ORDER BY seq")
    assert stored == [*((f"line_{n}", 0) for n in range(7) if n != 3), ("log_lines_dropped", 1)]
    return [("log line", "line_3")]


CASES: dict[type[Loop], Callable[[World], Awaitable[Found]]] = {
    ImageDownloads: images,
    AlertDeliverer: messages,
    CrawlFetcher: fetches,
    CrawlSubmitter: orders_of_pages,
    ResultProcessor: pages,
    Janitor: duties,
    Reaper: upkeep,
    Prober: probes,
    Scheduler: firings,
    PodReconciler: pods,
    VisitLog: visits,
    StorefrontIndexer: menus,
    ProductMatcher: matches,
    LocationMatcher: shops,
    WatchSender: mails,
    CommandLoop: orders_of_workers,
    Producer: work,
    LogWriter: lines,
}
