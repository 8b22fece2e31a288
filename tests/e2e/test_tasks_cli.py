"""`menuwatch tasks` as a person types it, on a real database."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from menuwatch.cli import main, output

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def surroundings(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("MENUWATCH_HOME", str(tmp_path))
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute(
            "INSERT INTO dispensaries (platform, platform_dispensary_id, slug, name, name_raw, state) VALUES"
            " ('dutchie', 'a', 'green-leaf', 'Green Leaf', 'g', 'TX'), ('dutchie', 'b', 'high-desert', 'High Desert', 'h', 'AZ')"
        )
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["menuwatch", "tasks", *arguments])
        code: Any = 0
        try:
            main.main()
        except SystemExit as end:
            code = end.code or 0
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


@pytest.fixture
def sql(database_url: str) -> Iterator[Callable[..., list[Any]]]:
    with psycopg.connect(database_url, autocommit=True) as conn:

        def ask(query: str, *values: Any) -> list[Any]:
            cursor = conn.execute(query.encode(), values)
            return cursor.fetchall() if cursor.description else []

        yield ask


FAIL = (
    "SELECT finish_tasks('w1', array_agg(id), array_agg(attempt), array_agg('fail'::text), array_agg('403 from host'::text),"
    " array_agg('{\"n\": 1}'::jsonb), array_agg(0::float8), array_agg(now()), array_agg(1::float8)) FROM claim_task(NULL, 'w1')"
)


def test_a_task_from_its_wish_to_its_retry(run: Run, sql: Callable[..., list[Any]]) -> None:
    assert run("enqueue", "product_resync", "--store", "green-leaf", "--priority", "-5") == (
        0,
        "Enqueued task 1.\n",
        "",
    )
    assert run("enqueue", "payload_fetch", "--store", "1") == (
        0,
        "Equal task 1 is already pending: priority 10 now, was -5.\n",
        "",
    )
    code, out, _ = run("show", "1")
    assert (code, out.splitlines()[:2]) == (
        0,
        [
            "Task 1: payload_fetch, pending",
            "Ready, but no worker is online. Start one with `menuwatch worker`.",
        ],
    )
    sql(FAIL)
    code, out, _ = run("show", "1")
    assert code == 0
    for says in ("Failed at", "1 (Green Leaf)", "claimed by w1", "Reason\n  403 from host", '"n": 1'):
        assert says in out
    code, out, _ = run("retry", "1")
    ((new,),) = sql("SELECT id FROM task_live")
    assert (code, out) == (0, f"Task 1 is enqueued again as task {new}.\n")
    assert run("retry", f"{new}")[1] == f"Task {new} is already pending and due: nothing changed.\n"
    assert (
        run("retry", f"{new}", "--priority", "30")[1] == f"Task {new} has a higher priority now; it was already due.\n"
    )
    run("enqueue", "store_discovery", "--at", "6h")
    assert run("retry", f"{new + 1}") == (0, f"Task {new + 1} is due now.\n", "")
    assert run("retry", "1") == (0, f"Task 1: equal task {new} is already pending.\n", "")
    assert run("cancel", f"{new}", "--reason", "wrong day") == (0, f"Cancelled task {new}.\n", "")
    assert sql("SELECT status, error_message FROM worker_tasks WHERE id = %s", new) == [("cancelled", "wrong day")]
    code, out, err = run("cancel", f"{new}", "99", "1")
    assert (code, out) == (1, "")
    assert f"task {new} is cancelled and can no longer be cancelled" in err
    assert "task 99 does not exist" in err
    shown = json.loads(run("show", "1", "--json")[1])
    assert (shown["explanation"]["code"], shown["result"], shown["store"]) == ("failed", {"n": 1}, "Green Leaf")


def test_lists_and_their_filters(run: Run, sql: Callable[..., list[Any]]) -> None:
    assert run("list") == (0, "", "No matching tasks.\n")
    run("enqueue", "payload_fetch", "--store", "green-leaf")
    sql(FAIL)
    run("enqueue", "store_discovery", "--at", "6h", "--payload", '{"state": "AZ"}')
    code, out, _ = run("list")
    assert (code, len(out.splitlines())) == (0, 3)
    assert "403 from host" in out
    assert " w1 " in out
    sql("INSERT INTO worker_registry (worker_id, friendly_name, host) VALUES ('w1', 'Ada', 'here')")
    assert " Ada " in run("list")[1], "as the list of workers names it"
    assert json.loads(run("list", "--worker", "Ada", "--json")[1])[0]["worker_id"] == "w1"
    (one,) = json.loads(run("list", "--status", "failed", "--role", "product_resync", "--store", "1", "--json")[1])
    assert (one["id"], one["status"], one["worker_id"]) == (1, "failed", "w1")
    (two,) = json.loads(run("list", "--status", "pending", "--limit", "5", "--format", "json")[1])
    assert (two["role"], two["payload"]) == ("store_discovery", {"state": "AZ"})
    assert json.loads(run("list", "--error", "404", "--json")[1]) == []
    assert len(json.loads(run("list", "--worker", "w1", "--error", "403", "--json")[1])) == 1
    assert run("list", "--limit", "1")[2] == "Newest 1 task; use --limit for more.\n"


def test_an_enqueue_says_what_it_changed_with_a_task_that_waits(run: Run, sql: Callable[..., list[Any]]) -> None:
    run("enqueue", "payload_fetch", "--store", "1", "--at", "2099-03-01T06:00", "--priority", "5")
    same = ("enqueue", "payload_fetch", "--store", "1", "--at", "2099-03-01T06:00")
    assert run(*same, "--priority", "5")[1] == "Equal task 1 is already pending: nothing changed.\n"
    code, out, _ = run("enqueue", "payload_fetch", "--store", "1", "--at", "2099-02-01T06:30", "--priority", "20")
    assert code == 0
    assert out == (
        "Equal task 1 is already pending: priority 20 now, was 5;"
        " due at 2099-02-01 06:30:00 UTC now, was at 2099-03-01 06:00:00 UTC.\n"
    )
    assert json.loads(run(*same, "--priority", "30", "--json")[1]) == {
        "id": 1,
        "created": False,
        "changed": {"priority": {"before": 20, "after": 30}},
    }


def test_what_is_shown_of_a_task_that_never_ran_and_of_one_at_its_second_try(
    run: Run, sql: Callable[..., list[Any]]
) -> None:
    run("enqueue", "store_discovery", "--at", "15d")
    run("cancel", "1")
    code, out, _ = run("show", "1")
    assert code == 0
    second = out.splitlines()[1]
    assert second.startswith("Cancelled at ")
    assert second.endswith(" UTC.")
    assert " due" not in out
    assert "Reason" not in out
    run("enqueue", "payload_fetch", "--store", "1")
    sql(FAIL.replace("'fail'", "'retry'"))
    assert "\nReason\n  403 from host" in run("show", "2")[1]
    sql("SELECT claim_task(NULL, 'w2')")
    assert "\nLast reason\n  403 from host" in run("show", "2")[1]


def test_a_terminal_of_80_columns_cuts_nothing_that_one_types_again(
    run: Run, sql: Callable[..., list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    sql("ALTER SEQUENCE task_ids RESTART 1234567")
    run("enqueue", "entry_point_discovery", "--store", "green-leaf", "--at", "6h")
    worker = "a-machine-with-a-long-name-4711-0123456789ab"
    run("enqueue", "payload_fetch", "--store", "green-leaf")
    sql(FAIL.replace("'w1'", f"'{worker}'"))
    for columns, left in ((80, True), (200, False)):
        monkeypatch.setattr(output.console, "width", columns)
        code, out, err = run("list")
        assert code == 0
        assert max(len(line) for line in out.splitlines()) <= columns
        assert [line.split()[:2] for line in out.splitlines()[1:]] == [
            ["1234568", "payload_fetch"],
            ["1234567", "entry_point_discovery"],
        ]
        assert ("failed" in out, "pending" in out) == (True, True)
        assert ("Hidden columns:" in err) is left
        assert (worker in out) is not left
    monkeypatch.setattr(output.console, "width", 30)
    assert "1234567  entry_point_discovery  pending" in run("list")[1], "the terminal wraps what must not be cut"


def test_a_state_and_bulk(run: Run, sql: Callable[..., list[Any]]) -> None:
    assert run("enqueue", "payload_fetch", "--state", "tx") == (0, "1 new task for 1 store; 0 already pending.\n", "")
    run("enqueue", "payload_fetch", "--store", "high-desert")
    for _ in range(2):
        sql(FAIL)
    run("enqueue", "store_discovery")
    assert run("retry", "--status", "failed", "--dry-run")[1] == "2 tasks would be retried.\n"
    dry = json.loads(run("retry", "--status", "failed", "--dry-run", "--json")[1])
    assert dry == {"matched": 2, "done": 0, "would": 2, "dry_run": True, "skipped": {}}
    code, out, err = run("retry", "--status", "failed")
    assert (code, out) == (2, "")
    assert "Retry 2 tasks? No TTY for confirmation; pass --yes." in err
    assert run("retry", "--role", "payload_fetch", "--yes", "--priority", "30")[1] == "2 tasks retried.\n"
    assert sql("SELECT DISTINCT priority FROM task_live WHERE role = 'payload_fetch'") == [(30,)]
    done = json.loads(run("retry", "--role", "payload_fetch", "--yes", "--json")[1])
    assert done == {"matched": 4, "done": 0, "would": 0, "dry_run": False, "skipped": {"waiting": 4}}
    assert run("cancel", "--store", "2", "--yes")[1] == "1 task cancelled; skipped: 1 finished.\n"
    assert run("cancel", "--all", "-y")[1] == "2 tasks cancelled; skipped: 3 finished.\n"
    assert sql("SELECT count(*) FROM task_live") == [(0,)]


def test_a_dry_run_counts_equal_tasks_once_and_blocked_ones_are_found(run: Run, sql: Callable[..., list[Any]]) -> None:
    for _ in range(3):
        run("enqueue", "payload_fetch", "--store", "green-leaf")
        sql(FAIL)
    dry = json.loads(run("retry", "--error", "403", "--dry-run", "--json")[1])
    done = json.loads(run("retry", "--error", "403", "--yes", "--json")[1])
    assert (dry["matched"], dry["would"], dry["skipped"]) == (done["matched"], done["done"], done["skipped"])
    assert (dry["matched"], dry["would"]) == (3, 1)
    sql('UPDATE queue_settings SET platform_hosts = \'{"dutchie": ["menus.test"]}\'')
    assert json.loads(run("list", "--status", "blocked", "--json")[1]) == []
    sql(
        "INSERT INTO hosts (host, rate, burst, concurrency, current_rate, paused_at, paused_reason)"
        " VALUES ('menus.test', 1, 1, 1, 1, now(), 'lawyers')"
    )
    (task,) = json.loads(run("list", "--status", "blocked", "--json")[1])
    assert (task["wait_state"], task["blocked_by"]) == ("blocked", "menus.test")
    assert "blocked" in run("list", "--status", "pending")[1]
    (failure,) = json.loads(run("failures", "--json")[1])
    assert run("mute", failure["cause"], "--role", "payload_fetch", "--reason", "known", "--for", "4h")[0] == 0
    assert [one["status"] for one in json.loads(run("failures", "--json")[1])] == ["muted"]
    assert run("unmute", failure["cause"], "--role", "payload_fetch") == (0, f"Unmuted {failure['cause']}.\n", "")
    assert run("failures", "--status", "muted", "--json")[1].strip() == "[]"


def test_priority_clone_and_due_stores(run: Run, sql: Callable[..., list[Any]]) -> None:
    sql("UPDATE dispensaries SET last_crawled_at = now() WHERE id = 2")
    assert run("enqueue", "payload_fetch", "--due") == (0, "1 new task for 2 stores; 0 already pending.\n", "")
    assert run("priority", "1", "30") == (0, "Task 1: priority 30 now, was 10.\n", "")
    assert run("clone", "1", "--store", "2", "--priority", "5") == (0, "Cloned task 1 as task 2.\n", "")
    assert run("clone", "1") == (0, "Equal task 1 is already pending.\n", "")
    assert sql("SELECT id, dispensary_id, priority FROM task_live ORDER BY id") == [(1, 1, 30), (2, 2, 5)]
    assert run("priority", "99", "1")[0] == 2


def test_failures_by_cause(run: Run, sql: Callable[..., list[Any]]) -> None:
    assert run("failures") == (0, "", "No matching failures in this period.\n")
    run("enqueue", "payload_fetch", "--store", "1")
    sql(FAIL)
    (group,) = json.loads(run("failures", "--role", "payload_fetch", "--window", "1h", "--json")[1])
    assert (group["count"], group["example_id"], group["example"]) == (1, 1, "403 from host")
    assert "from host" in run("failures")[1]


REFUSED = [
    (("list", "--role", "sweep"), "unknown role 'sweep'; use one of: store_discovery, entry_point_discovery"),
    (("list", "--status", "asleep"), "unknown status 'asleep'; use one of: pending, claimed, running, completed"),
    (("list", "--store", "nowhere"), "store 'nowhere' does not exist: enter its name, slug or ID"),
    (("list", "--json", "--format", "csv"), "--json and --format csv are mutually exclusive"),
    (("list", "--error", ""), "--error is empty"),
    (("cancel", "--error", "", "--all", "--yes"), "--error is empty"),
    (("cancel", "--role", "payload_fetch", "--worker", "", "--yes"), "--worker is empty"),
    (("retry", "--error", "x" * 201), "--error has 201 characters: at most 200"),
    (("cancel", "1", "--reason", ""), "--reason is empty"),
    (("show", "99"), "task 99 does not exist"),
    (("retry", "99"), "task 99 does not exist"),
    (("retry",), "retry which tasks? Give task ids, a filter"),
    (("cancel", "1", "--status", "failed"), "mutually exclusive"),
    (("cancel", "--all", "--status", "failed"), "cancel which tasks?"),
    (("retry", "1", "--dry-run"), "--dry-run needs a filter"),
    (("enqueue", "sweep"), "payload_fetch, product_refresh, analytics_refresh, product_resync"),
    (("enqueue", "payload_fetch"), "needs a store"),
    (("enqueue", "payload_fetch", "--state", "ZZ"), "state 'ZZ' does not exist: stores exist in AZ, TX"),
    (("enqueue", "payload_fetch", "--state", "TX", "--store", "1"), "are mutually exclusive"),
    (("enqueue", "store_discovery", "--at", "soon"), "--at 'soon' is not a time to schedule for"),
    (("enqueue", "store_discovery", "--at", "1000-01-01"), "is not a time to schedule for"),
    (("enqueue", "store_discovery", "--payload", "[1]"), "is not a JSON object such as {\"payload_id\": 7}"),
    (("enqueue", "store_discovery", "--payload", "{"), "is not a JSON object such as {\"payload_id\": 7}"),
    (("enqueue", "store_discovery", "--payload", '{"a": NaN}'), "is not a JSON object such as {\"payload_id\": 7}"),
    (("enqueue", "store_discovery", "--payload", '{"a": "\\ud800"}'), "is not a JSON object such as {\"payload_id\": 7}"),
    (("enqueue", "store_discovery", "--payload", '{"a": ["\\u0000"]}'), "holds a NUL character"),
    (("enqueue", "store_discovery", "--at", "999999w"), "is not a time to schedule for"),
    (("enqueue", "product_refresh", "--store", "1"), "needs a payload"),
]  # fmt: skip


def test_what_is_refused_says_what_would_be_right(run: Run, sql: Callable[..., list[Any]]) -> None:
    for arguments, says in REFUSED:
        code, out, err = run(*arguments)
        assert (code, out) == (2, ""), arguments
        assert err.startswith("menuwatch: "), arguments
        assert says in err, (arguments, err)
    assert run("enqueue", "store_discovery", "--priority", "1001")[0] == 2
    assert sql("SELECT count(*) FROM worker_tasks") == [(0,)]


def test_a_person_is_asked_first(run: Run, sql: Callable[..., list[Any]]) -> None:
    """At a terminal: no answer but yes does anything."""
    run("enqueue", "store_discovery")
    for typed, code, left in ((b"n\n", 1, 1), (b"y\n", 0, 0)):
        ours, theirs = pty.openpty()
        os.write(ours, typed)
        command = [sys.executable, "-m", "menuwatch.cli.main", "tasks", "cancel", "--role", "store_discovery"]
        done = subprocess.run(command, stdin=theirs, capture_output=True, text=True, timeout=60)
        os.close(ours)
        os.close(theirs)
        assert "Cancel 1 task?" in done.stderr, done.stderr
        assert (done.returncode, sql("SELECT count(*) FROM task_live")) == (code, [(left,)])


def test_stale_tasks_are_recovered_on_request(run: Run, sql: Callable[..., list[Any]]) -> None:
    run("enqueue", "payload_fetch", "--store", "green-leaf")
    sql("SELECT claim_task(NULL, 'w1')")
    sql("UPDATE task_live SET claimed_at = now() - interval '5 minutes'")
    assert run("recover-stale") == (0, "0 stale tasks recovered (no heartbeat for 10 min).\n", "")
    for wrong in ("0.5", "1441", "soon"):
        code, _, said = run("recover-stale", "--older-than", wrong)
        assert (code, "--older-than" in said) == (2, True), wrong
    assert run("recover-stale", "--older-than", "4") == (0, "1 stale task recovered (no heartbeat for 4 min).\n", "")
    assert sql("SELECT status, retry_count FROM worker_tasks") == [("pending", 1)]
    sql("SELECT claim_task(NULL, 'w2')")
    sql("UPDATE task_live SET claimed_at = now() - interval '1 hour'")
    assert json.loads(run("recover-stale", "--json")[1]) == {"recovered": 1, "threshold_minutes": 10.0}


def test_the_list_takes_the_search_of_the_dashboard(run: Run, sql: Callable[..., list[Any]]) -> None:
    run("enqueue", "payload_fetch", "--store", "green-leaf")
    sql(FAIL)
    run("enqueue", "analytics_refresh")
    for query, ids in (
        ("state:failed store:green-leaf 403", [1]),
        ("-role:payload_fetch", [2]),
        ("attempts:>0 took:<1h", [1]),
        ("attempts:>1", []),
    ):
        code, out, _ = run("list", "--query", query, "--json")
        assert (code, [task["id"] for task in json.loads(out)]) == (0, ids), query
    code, _, said = run("list", "--query", "rle:x")
    assert code == 2
    assert "unknown qualifier rle:" in said
    assert run("retry", "--query", "state:failed", "--dry-run")[1].startswith("1 task would be retried")
