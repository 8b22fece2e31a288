"""The life of a worker that knows PostgreSQL and nothing of Menuwatch: the functions of 13_workers_protocol.sql, by a plain driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from menuwatch.core.postpone import PostponeCode

Row = dict[str, Any]


class Sql:
    """A connection in autocommit mode."""

    def __init__(self, url: str) -> None:
        self.conn = psycopg.connect(url, autocommit=True, row_factory=dict_row)

    def rows(self, statement: str, *values: Any) -> list[Row]:
        cursor = self.conn.execute(statement.encode(), values)
        return cursor.fetchall() if cursor.description else []

    def row(self, statement: str, *values: Any) -> Row:
        (row,) = self.rows(statement, *values)
        return row

    def refused(self, code: str, statement: str, *values: Any) -> str:
        """The message of the error that the statement ends with."""
        before = self.state()
        with pytest.raises(psycopg.Error) as refused:
            self.rows(statement, *values)
        assert refused.value.diag.sqlstate == code, refused.value
        assert self.state() == before, "a refusal changes nothing"
        return refused.value.diag.message_primary or ""

    def state(self) -> list[Row]:
        return self.rows("SELECT * FROM worker_tasks ORDER BY id")

    def task(self, task: int) -> Row:
        return self.row("SELECT * FROM worker_tasks WHERE id = %s", task)

    def enqueue(self, role: str = "analytics_refresh", **fields: Any) -> int:
        values = {"role": role, "payload": Jsonb({"n": len(self.state())}), **fields}
        names, marks = ", ".join(values), ", ".join(["%s"] * len(values))
        return int(
            self.row(f"INSERT INTO worker_tasks ({names}) VALUES ({marks}) RETURNING id", *values.values())["id"]
        )


@pytest.fixture
def sql(database_url: str) -> Iterator[Sql]:
    made = Sql(database_url)
    yield made
    made.conn.close()


def test_a_whole_life(sql: Sql) -> None:
    done, again, later, broken = [sql.enqueue(priority=number) for number in (40, 30, 20, 10)]
    assert sql.row("SELECT worker_register('w', ARRAY['analytics_refresh'], 'box') AS new") == {"new": True}
    claimed = sql.rows("SELECT * FROM worker_claim('w', n => 10)")
    assert [(task["id"], task["attempt"], task["status"], task["payload"]) for task in claimed] == [
        (done, 1, "claimed", {"n": 0}),
        (again, 1, "claimed", {"n": 1}),
        (later, 1, "claimed", {"n": 2}),
        (broken, 1, "claimed", {"n": 3}),
    ]
    assert sql.row("SELECT status FROM worker_start('w', %s, 1)", done) == {"status": "running"}
    beat = sql.row("SELECT * FROM worker_heartbeat('w', %s, %s)", [done, again], [1, 1])
    assert beat == {"lost": [], "commands": []}

    follow_ups = Jsonb(
        [{"role": "store_discovery", "payload": {"state": "AZ"}}, {"role": "product_resync", "dispensary_id": 7}]
    )
    ended = sql.row("SELECT * FROM worker_complete('w', %s, 1, %s, %s, 2.5)", done, Jsonb({"ok": True}), follow_ups)
    assert (ended["status"], ended["result"], ended["worker_id"]) == ("completed", {"ok": True}, "w")
    added = [row for row in sql.state() if row["id"] > broken]
    assert [(row["role"], row["dispensary_id"], row["payload"], row["priority"]) for row in added] == [
        ("store_discovery", None, {"state": "AZ"}, 10),
        ("payload_fetch", 7, {}, 10),
    ]
    waits = sql.row("SELECT * FROM worker_retry('w', %s, 1, 'HTTP 500', 60)", again)
    assert (waits["status"], waits["retry_count"], waits["error_message"]) == ("pending", 1, "HTTP 500")
    assert 59 < (waits["scheduled_for"] - waits["updated_at"]).total_seconds() < 61
    put = sql.row(
        "SELECT * FROM worker_postpone('w', %s, 1, 'too many requests', wait => 60, code => 'throttled', host => 'h.test')",
        later,
    )
    assert (put["status"], put["retry_count"], put["postpone_count"]) == ("pending", 0, 1)
    assert (put["postpone_code"], put["postpone_host"]) == ("throttled", "h.test")
    failed = sql.row("SELECT * FROM worker_fail('w', %s, 1, 'no such menu')", broken)
    assert (failed["status"], failed["error_message"]) == ("failed", "no such menu")

    sql.rows("INSERT INTO worker_commands (worker_id, command, created_by) VALUES ('w', 'decommission', 'Ada')")
    (command,) = sql.row("SELECT commands FROM worker_heartbeat('w')")["commands"]
    assert (command["command"], command["created_by"]) == ("decommission", "Ada")
    assert sql.row(
        "SELECT commands FROM worker_heartbeat('w', status => 'stopping', acknowledged => %s)", [command["id"]]
    ) == {"commands": []}
    assert sql.row("SELECT worker_leave('w') AS returned") == {"returned": 0}
    assert sql.row("SELECT status FROM worker_registry") == {"status": "stopped"}


def test_a_repeated_end_is_answered_as_before(sql: Sql) -> None:
    ids = [sql.enqueue() for _ in range(4)]
    sql.rows("SELECT worker_register('w')")
    sql.rows("SELECT * FROM worker_claim('w', n => 4)")
    follow_ups = Jsonb([{"role": "analytics_refresh", "payload": {"follows": 1}}])
    for statement, values in (
        ("SELECT * FROM worker_complete('w', %s, 1, %s, %s)", (ids[0], Jsonb({"a": 1}), follow_ups)),
        ("SELECT * FROM worker_retry('w', %s, 1, 'late')", (ids[1],)),
        ("SELECT * FROM worker_postpone('w', %s, 1, 'busy', wait => 30)", (ids[2],)),
        ("SELECT * FROM worker_fail('w', %s, 1, 'broken')", (ids[3],)),
    ):
        first = sql.row(statement, *values)
        state = sql.state()
        assert sql.row(statement, *values) == first
        assert sql.state() == state, "the second time changes nothing"
    # An end of another kind, or for another reason, is another end.
    for statement in (
        f"SELECT worker_fail('w', {ids[0]}, 1, 'x')",
        f"SELECT worker_complete('w', {ids[3]}, 1)",
        f"SELECT worker_fail('w', {ids[3]}, 1, 'x')",
        f"SELECT worker_retry('w', {ids[1]}, 1, 'x')",
        f"SELECT worker_postpone('w', {ids[1]}, 1, 'late', wait => 1)",
    ):
        sql.refused("MW409", statement)


def test_what_is_not_the_workers_own_is_refused(sql: Sql) -> None:
    task = sql.enqueue()
    for worker in ("a", "b"):
        sql.rows("SELECT worker_register(%s)", worker)
    ends = (
        "worker_start(%s, %s, %s)",
        "worker_complete(%s, %s, %s)",
        "worker_retry(%s, %s, %s, 'x')",
        "worker_postpone(%s, %s, %s, 'x', wait => 1)",
        "worker_fail(%s, %s, %s, 'x')",
    )

    def all_refused(code: str, says: str, *values: Any) -> None:
        for end in ends:
            message = sql.refused(code, f"SELECT * FROM {end}", *values)
            assert says in message, message

    all_refused("MW404", "task 999999 does not exist", "a", 999999, 1)
    all_refused("MW409", "there was no attempt 1 yet", "a", task, 1)
    sql.rows("SELECT * FROM worker_claim('a')")
    all_refused("MW409", f"attempt 1 of task {task} does not belong to worker b: worker a runs it", "b", task, 1)
    all_refused("MW409", "there was no attempt 2 yet, the last one is 1", "a", task, 2)
    all_refused("22023", "the number of the attempt is missing", "a", task, None)
    # It falls silent, and the task goes on to another worker.
    sql.rows("UPDATE task_live SET claimed_at = now() - interval '1 hour'")
    assert sql.row("SELECT recover_stale_tasks(10) AS n") == {"n": 1}
    all_refused("MW409", "attempt 1 has ended, and the task is pending", "a", task, 1)
    assert sql.row("SELECT attempt FROM worker_claim('b')") == {"attempt": 2}
    all_refused("MW409", "worker b runs attempt 2", "a", task, 1)
    assert sql.row("SELECT lost FROM worker_heartbeat('a', %s)", [task]) == {"lost": [task]}
    sql.rows("SELECT * FROM worker_complete('b', %s, 2)", task)
    all_refused("MW409", "the task is completed", "a", task, 1)
    # Of one worker as well: it lost the task and has it again.
    task = sql.enqueue()
    sql.rows("SELECT * FROM worker_claim('a')")
    sql.rows("UPDATE task_live SET claimed_at = now() - interval '1 hour'")
    sql.rows("SELECT recover_stale_tasks(10)")
    sql.rows("SELECT * FROM worker_claim('a')")
    all_refused("MW409", "worker a runs attempt 2", "a", task, 1)
    assert sql.row("SELECT lost FROM worker_heartbeat('a', %s, %s)", [task], [1]) == {"lost": [task]}
    assert sql.row("SELECT lost FROM worker_heartbeat('a', %s, %s)", [task], [2]) == {"lost": []}


def test_who_may_claim(sql: Sql) -> None:
    sql.enqueue("payload_fetch", dispensary_id=1)
    assert "register it first" in sql.refused("MW404", "SELECT * FROM worker_claim('w')")
    assert "register it first" in sql.refused("MW404", "SELECT * FROM worker_heartbeat('w')")
    assert "register it first" in sql.refused("MW404", "SELECT worker_leave('w')")
    sql.rows("SELECT worker_register('w', ARRAY['product_resync', 'product_refresh'])")
    assert sql.row("SELECT roles FROM worker_registry") == {"roles": ["payload_fetch", "product_refresh"]}
    says = sql.refused("22023", "SELECT * FROM worker_claim('w', ARRAY['store_discovery'])")
    assert "registered only for payload_fetch, product_refresh" in says
    claimable = "SELECT claimable, reason FROM worker_claimable('w', NULL, '{}')"
    assert sql.row(claimable) == {"claimable": ["payload_fetch", "product_refresh"], "reason": None}
    # An order to pause holds from the moment at which it is given, until the worker says that it goes on.
    sql.rows("INSERT INTO worker_commands (worker_id, command) VALUES ('w', 'pause')")
    assert sql.row(claimable) == {"claimable": [], "reason": "the command pause is not acknowledged"}
    sql.rows(
        "SELECT * FROM worker_heartbeat('w', status => 'paused', acknowledged => ARRAY(SELECT id FROM worker_commands))"
    )
    assert sql.row(claimable) == {"claimable": [], "reason": "the worker is paused"}
    assert sql.rows("SELECT * FROM worker_claim('w')") == []
    sql.rows("SELECT * FROM worker_heartbeat('w')")
    assert len(sql.rows("SELECT * FROM worker_claim('w')")) == 1
    # Leaving gives it back as it was.
    assert sql.row("SELECT worker_leave('w') AS returned") == {"returned": 1}
    (task,) = sql.state()
    assert (task["status"], task["retry_count"], task["error_message"]) == ("pending", 0, None)
    for statement in ("SELECT * FROM worker_claim('w')", "SELECT * FROM worker_heartbeat('w')"):
        assert "register it again" in sql.refused("MW409", statement)
    assert sql.row("SELECT worker_leave('w') AS returned") == {"returned": 0}, "twice is as once"


def test_the_rules_of_a_claim(sql: Sql) -> None:
    sql.rows("SELECT worker_register('w')")
    for store in (1, 1, 2):
        sql.enqueue("payload_fetch", dispensary_id=store)
    sql.enqueue("product_refresh", dispensary_id=1, priority=50)
    claimed = sql.rows("SELECT * FROM worker_claim('w', n => 10)")
    assert sorted(task["dispensary_id"] for task in claimed) == [1, 2], "one of each store, whatever its role"
    # While all hosts are blocked, tasks that make requests wait; one host that is open is enough, and so is one that is unknown.
    sql.rows(
        "INSERT INTO hosts (host, rate, burst, concurrency, current_rate) VALUES ('a.test', 1, 1, 1, 1), ('b.test', 1, 1, 1, 1)"
    )
    for store in (3, 4, 5):
        sql.enqueue("payload_fetch", dispensary_id=store)
    sql.enqueue("analytics_refresh")
    sql.rows("UPDATE hosts SET paused_at = now(), paused_reason = 'they asked'")
    hosts = ["a.test", "b.test"]
    found = sql.row("SELECT * FROM worker_claimable('w', NULL, %s)", hosts)
    assert found == {
        "claimable": ["product_refresh", "analytics_refresh"],
        "reason": "a.test is blocked: they asked; b.test is blocked: they asked",
    }
    assert [task["role"] for task in sql.rows("SELECT * FROM worker_claim('w', n => 10, hosts => %s)", hosts)] == [
        "analytics_refresh"
    ]
    assert len(sql.rows("SELECT * FROM worker_claim('w', hosts => %s)", [*hosts, "c.test"])) == 1
    sql.rows("UPDATE hosts SET paused_at = NULL, paused_reason = NULL WHERE host = 'b.test'")
    assert len(sql.rows("SELECT * FROM worker_claim('w', hosts => %s)", hosts)) == 1
    # What waited long comes first.
    sql.enqueue("product_refresh", dispensary_id=6, priority=5)
    old = sql.enqueue("product_refresh", dispensary_id=7)
    sql.rows("UPDATE task_live SET created_at = now() - interval '2 hours' WHERE id = %s", old)
    sql.rows("SELECT age_tasks()")
    assert sql.row("SELECT id FROM worker_claim('w', ARRAY['product_refresh'])") == {"id": old}


def test_one_task_in_four_is_of_the_role_that_waited_longest(sql: Sql) -> None:
    sql.rows("SELECT worker_register('w')")
    for _ in range(60):
        sql.enqueue("analytics_refresh", priority=30)
    first = sql.enqueue("store_discovery")
    sql.rows("UPDATE task_live SET created_at = now() - interval '10 seconds' WHERE id = %s", first)
    claimed = sql.rows("SELECT id FROM worker_claim('w', n => 4)")
    assert first in [task["id"] for task in claimed]


def test_a_claim_whose_answer_was_lost(sql: Sql) -> None:
    sql.rows("SELECT worker_register('w')")
    kept, lost = sql.enqueue(priority=2), sql.enqueue(priority=1)
    sql.rows("SELECT * FROM worker_claim('w', n => 2)")
    (again,) = sql.rows("SELECT * FROM worker_claim('w', holding => %s)", [kept])
    assert (again["id"], again["attempt"], again["retry_count"]) == (lost, 2, 0)
    assert sql.task(kept)["attempt"] == 1


def test_a_worker_that_starts_again_gives_back_what_its_last_process_had(sql: Sql) -> None:
    sql.rows("SELECT worker_register('w')")
    task, last = sql.enqueue(priority=1), sql.enqueue(max_retries=0)
    sql.rows("SELECT * FROM worker_claim('w', n => 2)")
    sql.rows("INSERT INTO worker_commands (worker_id, command) VALUES ('w', 'decommission')")
    assert sql.row("SELECT worker_register('w') AS new") == {"new": False}
    assert sql.row("SELECT commands FROM worker_heartbeat('w')") == {"commands": []}, (
        "the command was for the process before"
    )
    assert [sql.task(one)["status"] for one in (task, last)] == ["pending", "failed"]
    assert sql.task(task)["error_message"] == "worker w was started again"
    (again,) = sql.rows("SELECT * FROM worker_claim('w', n => 2)")
    assert (again["id"], again["attempt"], again["retry_count"]) == (task, 2, 1)
    sql.refused("MW409", "SELECT * FROM worker_complete('w', %s, 1)", task)


def test_the_back_off_and_its_end(sql: Sql) -> None:
    """Base times two to the number of retries, less up to half of it (core/backoff.py), until no retry is left."""
    sql.rows("UPDATE queue_settings SET retry_base = interval '100 seconds'")
    sql.rows("SELECT worker_register('w')")
    task = sql.enqueue(max_retries=2)
    for attempt, ceiling in ((1, 100), (2, 200)):
        sql.rows("SELECT * FROM worker_claim('w')")
        found = sql.row("SELECT * FROM worker_retry('w', %s, %s, 'x')", task, attempt)
        assert ceiling / 2 <= (found["scheduled_for"] - found["updated_at"]).total_seconds() <= ceiling
        sql.rows("UPDATE task_live SET scheduled_for = now()")
    sql.rows("SELECT * FROM worker_claim('w')")
    assert sql.row("SELECT status FROM worker_retry('w', %s, 3, 'x')", task) == {"status": "failed"}
    assert sql.row("SELECT status FROM worker_retry('w', %s, 3, 'x')", task) == {"status": "failed"}


INVALID = [
    ("SELECT worker_register('')", "1 to 200 printable characters"),
    ("SELECT worker_register('a/b')", "without slashes"),
    ("SELECT worker_register('x', ARRAY['dance'])", "it is one of store_discovery"),
    ("SELECT worker_claim('w', n => 0)", "between 1 and 1000"),
    ("SELECT worker_heartbeat('w', status => 'asleep')", "active, paused, backing_off, stopping"),
    ("SELECT worker_heartbeat('w', ARRAY[1, 2], ARRAY[1])", "one number for each of the 2 tasks, not 1"),
    ("SELECT worker_complete('w', 1, 1, '[]')", "result must be a JSON object, not array"),
    ("SELECT worker_complete('w', 1, 1, NULL, '{}')", "array of objects"),
    ("SELECT worker_complete('w', 1, 1, NULL, '[1]')", "array of objects"),
    ("SELECT worker_complete('w', 1, 1, NULL, '[{\"rôle\": 1}]')", "its fields are role, dispensary_id, "),
    ("SELECT worker_complete('w', 1, 1, NULL, '[{\"role\": \"dance\"}]')", "it is one of store_discovery"),
    ("SELECT worker_postpone('w', 1, 1, 'x')", "either due or wait"),
    ("SELECT worker_postpone('w', 1, 1, 'x', now(), 1)", "either due or wait"),
    ("SELECT worker_postpone('w', 1, 1, 'x', 'infinity')", "either due or wait"),
    ("SELECT worker_postpone('w', 1, 1, 'x', wait => 1, code => 'tired')", "use one of paused, "),
]


def test_values_that_cannot_be_used_are_named(sql: Sql) -> None:
    task = sql.enqueue()
    sql.rows("SELECT worker_register('w')")
    sql.rows("SELECT * FROM worker_claim('w')")
    for statement, says in INVALID:
        message = sql.refused("22023", statement.replace("'w', 1, 1", f"'w', {task}, 1"))
        assert says in message, (statement, message)
    sql.rows("SELECT * FROM worker_complete('w', %s, 1)", task)


@pytest.mark.parametrize("code", PostponeCode)
def test_every_code_of_a_postponement_is_taken(sql: Sql, code: PostponeCode) -> None:
    task = sql.enqueue()
    sql.rows("SELECT worker_register('w')")
    sql.rows("SELECT * FROM worker_claim('w')")
    found = sql.row(
        "SELECT * FROM worker_postpone('w', %s, 1, 'x', wait => 60, code => %s, counted => false)", task, str(code)
    )
    assert (found["postpone_code"], found["postpone_count"]) == (code, 0)
