"""`menuwatch hosts` as a person types it, on a real database."""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from menuwatch.cli import main

Run = Callable[..., tuple[int, str, str]]
Sql = Callable[..., list[Any]]


@pytest.fixture(autouse=True)
def surroundings(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("MENUWATCH_HOME", str(tmp_path))
    monkeypatch.setenv("HOST_RATE", "3")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["menuwatch", *arguments])
        code: Any = 0
        try:
            main.main()
        except SystemExit as end:
            code = end.code or 0
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


@pytest.fixture
def sql(database_url: str) -> Iterator[Sql]:
    with psycopg.connect(database_url, autocommit=True) as conn:

        def ask(query: str, *values: Any) -> list[Any]:
            cursor = conn.execute(query.encode(), values)
            return cursor.fetchall() if cursor.description else []

        yield ask


COOLING = (
    "UPDATE hosts SET cooldown_until = now() + interval '50 minutes', cooldown_reason = 'HTTP 429, wait 3000 s',"
    " rate_reduced_at = now(), current_rate = rate / 2, consecutive_throttles = 1"
)
OPEN = (
    "UPDATE hosts SET circuit = 'open', circuit_opened_at = now() - interval '5 minutes', consecutive_opens = 1,"
    " circuit_until = now() + interval '10 minutes', circuit_reason = 'refused 6 identities on 5 proxies in a row'"
)


def test_limits_of_a_host_that_was_never_asked(run: Run, sql: Sql) -> None:
    code, out, err = run("hosts", "list")
    assert (code, out) == (0, "")
    assert "No known hosts." in err
    code, out, err = run(
        "hosts", "set", "https://Dutchie.com/dispensary/x", "--burst", "7", "--min-gap", "0.25", "--json"
    )
    found = json.loads(out)
    assert (found["host"], found["rate"], found["burst"], found["min_gap"]) == ("dutchie.com", 3.0, 7, 0.25)
    assert (found["state"], found["current_rate"], found["advice"]) == ("healthy", 3.0, None)
    run("hosts", "set", "dutchie.com", "--rate", "1.5")
    assert sql("SELECT rate, burst, current_rate FROM hosts") == [(1.5, 7, 1.5)]
    assert [row[0] for row in sql("SELECT reason FROM host_events ORDER BY id")] == [
        "set: burst 7, min_gap 0.25",
        "set: rate 1.5",
    ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["set", "a.com", "--rate", "nan"], "rate must be between 0.000001 and 1000000 requests a second, not nan"),
        (["set", "a.com", "--rate=-1"], "second, not -1.0"),
        (["set", "a.com", "--rate", "0"], "second, not 0.0"),
        (["set", "a.com", "--rate", "inf"], "second, not inf"),
        (["set", "a.com", "--burst", "0"], "burst must be between 1 and 10000 requests, not 0"),
        (["set", "a.com", "--burst", "1" + "0" * 400], "burst must be between 1 and 10000 requests"),
        (["set", "a.com", "--concurrency", "10001"], "between 1 and 10000 identities"),
        (["set", "a.com", "--min-gap", "86401"], "between 0 and 86400 seconds"),
        (["set", "a.com"], "nothing to set: give --rate, --burst, --concurrency or --min-gap"),
        (["set", "a b", "--rate", "1"], "invalid host 'a b'"),
        (["set", "http://[", "--rate", "1"], "invalid host"),
        (["set", "a.com/\x00", "--rate", "1"], "invalid host"),
        (["show", "dutchi.com"], "did you mean dutchie.com?"),
        (["pause", "dutchie com"], "invalid host 'dutchie com'"),
        (["remove", "dutchi.com"], "did you mean dutchie.com?"),
        (["reset", "dutchi.com", "--tasks"], "did you mean dutchie.com?"),
        (["resume", "zzz"], "known hosts: dutchie.com"),
        (["pause", "dutchie.com", "--reason", ""], "--reason is empty"),
    ],
)
def test_what_cannot_be_done(run: Run, sql: Sql, arguments: list[str], says: str) -> None:
    sql("INSERT INTO hosts (host, rate, burst, concurrency, current_rate) VALUES ('dutchie.com', 2, 4, 6, 2)")
    code, out, err = run("hosts", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert says in err
    assert sql("SELECT count(*) FROM hosts") == [(1,)]
    assert sql("SELECT count(*) FROM host_events") == [(0,)]


def test_a_host_that_is_closed_says_why_until_when_and_what_to_do(run: Run, sql: Sql) -> None:
    run("hosts", "set", "dutchie.com", "--rate", "2")
    sql(COOLING)
    _, out, err = run("hosts", "show", "dutchie.com")
    assert out.startswith("dutchie.com: cooling down, no requests, since ")
    said = " ".join(out.split())
    assert "Reason HTTP 429, wait 3000 s" in said
    assert ", in 49 min" in said or ", in 50 min" in said
    assert "`menuwatch hosts reset dutchie.com` resumes requests immediately" in said
    assert "Rate 1 of 2 requests per second" in said
    _, out, err = run("hosts", "list")
    assert "cooling" in out
    assert "hosts show HOST" in err

    sql(OPEN)
    _, out, _ = run("hosts", "show", "dutchie.com")
    said = " ".join(out.split())
    assert "circuit open" in said
    assert "refused 6 identities on 5 proxies in a row" in said
    assert "open the site in your own browser" in said
    sql("UPDATE hosts SET circuit_until = now() - interval '1 second', cooldown_until = NULL, cooldown_reason = NULL")
    (found,) = json.loads(run("hosts", "list", "--json")[1])
    assert (found["state"], found["until"]) == ("half_open", None)

    _, out, _ = run("hosts", "reset", "dutchie.com")
    assert out.startswith("dutchie.com: healthy\n")
    _, out, _ = run("hosts", "pause", "dutchie.com", "--reason", "their lawyer called")
    assert "Reason  their lawyer called" in out
    assert "hosts resume dutchie.com" in out
    assert run("hosts", "reset", "dutchie.com")[1].startswith("dutchie.com: paused"), "a reset is no resume"
    assert run("hosts", "resume", "dutchie.com")[1].startswith("dutchie.com: healthy\n")
    kinds = [row[0] for row in sql("SELECT reason FROM host_events ORDER BY id")]
    assert kinds[1:] == [
        "cool-down, circuit and rate reset by an operator",
        "paused: their lawyer called",
        "cool-down, circuit and rate reset by an operator",
        "resumed by an operator",
    ]


def test_who_fares_how_there(run: Run, sql: Sql) -> None:
    """Scores halve every six hours; the chance is (4 + good) / (5 + good + bad)."""
    run("hosts", "set", "dutchie.com", "--rate", "2")
    sql(
        "INSERT INTO proxies (protocol, host, port, username, password, is_active)"
        " SELECT 'http', '10.0.0.' || n, 8080, 'u', 'S3cret', true FROM generate_series(1, 8) n"
    )
    sql(
        "INSERT INTO proxy_scores SELECT 'dutchie.com', id, CASE WHEN id = 1 THEN 30 ELSE 1 END, CASE WHEN id > 6 THEN id ELSE 0 END,"
        " now() - CASE WHEN id = 1 THEN interval '6 hours' ELSE interval '0' END FROM proxies"
    )
    sql("INSERT INTO profile_scores VALUES ('dutchie.com', 'chrome', 0, 3, now()), ('safari', 'safari', 1, 0, now())")
    sql(
        "INSERT INTO fetch_totals VALUES ('dutchie.com', 'ok', 9, 0, 1000, 0, 0), ('dutchie.com', 'blocked', 3, 1, 10, 0, 0)"
    )
    sql(
        "INSERT INTO fetch_attempts (host, verdict, blame, reaction) SELECT 'dutchie.com', 'ok', 'none', 'return'"
        " FROM generate_series(1, 2)"
    )
    for proxy, task, seconds in ((2, 77, 60), (3, 78, -1)):
        sql(
            "INSERT INTO identity_leases (host, proxy_id, task_id, leased_at, expires_at)"
            " VALUES ('dutchie.com', %s, %s, now(), now() + make_interval(secs => %s))",
            proxy, task, seconds,
        )  # fmt: skip
    code, out, _ = run("hosts", "show", "dutchie.com", "--json")
    found = json.loads(out)
    assert code == 0
    assert "S3cret" not in out
    first = found["best"][0]
    assert (first["proxy_id"], first["name"]) == (1, "http://u@10.0.0.1:8080")
    assert first["good"] == pytest.approx(15, abs=0.1), "half of 30, six hours later"
    assert first["chance"] == pytest.approx(19 / 20, abs=0.001)
    assert [fare["proxy_id"] for fare in found["worst"]] == [8, 7], "who was never refused is not among the worst"
    assert found["worst"][0]["chance"] == pytest.approx(5 / 14, abs=0.001)
    assert [(fare["name"], fare["chance"]) for fare in found["browsers"]] == [("chrome", 0.5)]
    assert found["verdicts"] == [
        {"verdict": "ok", "day": 2, "total": 9, "bytes": 1000},
        {"verdict": "blocked", "day": 0, "total": 3, "bytes": 10},
    ]
    assert [(lease["proxy_id"], lease["task_id"]) for lease in found["leases"]] == [(2, 77)]
    assert (found["host"]["requests"], found["host"]["refusals"], found["host"]["leases"]) == (12, 3, 1)
    _, out, _ = run("hosts", "show", "dutchie.com")
    assert "proxy 2 (http://u@10.0.0.2:8080), task 77" in out
    assert max(map(len, out.splitlines())) <= 160


def test_the_doctor_names_hosts_that_are_not_asked(run: Run, sql: Sql) -> None:
    def findings() -> list[dict[str, Any]]:
        return [one for one in json.loads(run("doctor", "--json")[1])["findings"] if one["check"] == "hosts"]

    assert [(one["level"], one["detail"]) for one in findings()] == [("ok", "none requested yet")]
    for n in range(7):
        run("hosts", "set", f"h{n}.example", "--rate", "2")
    sql("UPDATE hosts SET current_rate = 1, rate_reduced_at = now() WHERE host = 'h3.example'")
    assert [(one["level"], one["detail"]) for one in findings()] == [
        ("ok", "7 hosts requested so far; at a reduced rate: h3.example")
    ]
    sql("UPDATE hosts SET paused_at = now(), paused_reason = 'lawyers' WHERE host = 'h1.example'")
    sql(f"{OPEN} WHERE host = 'h2.example'")
    sql(f"{COOLING} WHERE host = 'h0.example'")
    paused, circuit, cooling = findings()
    assert [one["level"] for one in (paused, circuit, cooling)] == ["critical", "critical", "warning"]
    assert cooling["detail"].startswith("h0.example is blocked for another ")
    assert "(cooling down): HTTP 429, wait 3000 s" in cooling["detail"]
    assert paused["detail"] == "h1.example is blocked (paused by an operator): lawyers."
    assert paused["mend"] == "resume it with `menuwatch hosts resume h1.example`"
    assert "open the site in your own browser" in circuit["mend"]
    sql(COOLING)
    assert "2 more are blocked." in [one["detail"] for one in findings()]
    assert run("doctor")[0] == 1, "critical: no worker runs, and hosts are paused"


def test_explain(run: Run, sql: Sql) -> None:
    """Few lines where all went well, every request where it did not, and with --all."""
    sql("INSERT INTO worker_tasks (role, payload) VALUES ('store_discovery', '{}')")
    ok = (
        "INSERT INTO fetch_attempts"
        " (task_id, host, proxy_id, profile, verdict, blame, reaction, status, bytes, elapsed_ms, attempted_at)"
        " SELECT 1, 'dutchie.com', 5, 'chrome', 'ok', 'none', 'return', 200, 1000, 20, now() + n * interval '1 ms'"
        " FROM generate_series(1, 3) n"
    )
    sql(ok)
    code, out, err = run("explain", "1")
    assert (code, err) == (0, "")
    assert out.startswith(
        "Task 1: store_discovery, pending\nReady, but no worker is online. Start one with `menuwatch worker`."
    )
    assert "enqueued on demand, priority 0" in out
    assert "requests to dutchie.com as chrome through proxy 5 (removed since)" in out
    assert "3 requests, all ok: 60 ms, 3.0 kB" in out
    assert "200 ok: 20 ms, 1.0 kB" not in out
    assert "3 requests (3 ok), 0 rotations; 60 ms requesting, 0 s waiting for rate limits, 3.0 kB" in out
    assert run("explain", "1", "--all")[1].count("200 ok: 20 ms, 1.0 kB") == 3
    sql(
        "INSERT INTO fetch_attempts (task_id, host, proxy_id, profile, verdict, blame, reaction, status, rotated, waited_ms, error)"
        " VALUES (1, 'dutchie.com', 6, 'safari', 'blocked', 'identity', 'rotate', 403, true, 2500, 'refused with HTTP 403\x1b[31m')"
    )
    out = run("explain", "1")[1]
    assert out.count("200 ok: 20 ms, 1.0 kB") == 3
    assert (
        "403 blocked: 0 s, 0 B, waited 2.5 s before; refused with HTTP 403\ufffd[31m → changes proxy and"
        in " ".join(out.split())
    )
    story = json.loads(run("explain", "1", "--json")[1])
    assert (story["code"], story["story"]["rotations"], len(story["story"]["requests"])) == ("no_worker", 1, 4)
    assert run("explain", "2")[::2] == (2, "menuwatch: task 2 does not exist\n")
    assert run("explain", "0")[0] == 2
    assert run("explain", str(2**63))[0] == 2


def test_explain_tells_of_a_task_that_was_put_off(run: Run, sql: Sql) -> None:
    sql("INSERT INTO worker_tasks (role, payload) VALUES ('store_discovery', '{}')")
    sql("SELECT claim_task(NULL, 'w1')")
    sql(
        "SELECT finish_tasks('w1', ARRAY[1::bigint], ARRAY[1], ARRAY['postpone'], ARRAY['requests to dutchie.com are blocked (cooling"
        " down): HTTP 429'], NULL, ARRAY[300::float8], NULL, ARRAY[1::float8], ARRAY['cooling'], ARRAY['dutchie.com'])"
    )
    said = " ".join(run("explain", "1")[1].split())
    assert "without a request: requests to dutchie.com are blocked (cooling down): HTTP 429" in said
    assert "attempt 1 postponed after" in said
    assert "due for attempt 2" in said
    sql(
        "INSERT INTO fetch_attempts (task_id, host, proxy_id, profile, verdict, blame, reaction, status, error) VALUES"
        " (1, 'dutchie.com', 6, 'safari', 'rate_limited', 'none', 'give_up', 429, 'HTTP 429, wait 300 s'),"
        " (1, 'dutchie.com', 6, 'safari', 'target_down', 'target', 'give_up', 500, 'HTTP 500')"
    )
    said = " ".join(run("explain", "1")[1].split())
    assert "429 rate_limited: 0 s, 0 B; HTTP 429, wait 300 s → task postponed" in said
    assert "500 target_down: 0 s, 0 B; HTTP 500 → gives up" in said
    sql(
        "UPDATE task_live SET state = 'a', uniq = 0, worker_id = 'w1', claimed_at = now(), started_at = now(), attempt = 2"
    )
    said = " ".join(run("explain", "1")[1].split())
    assert "claimed by w1, attempt 2" in said
    assert "HTTP 429" not in run("tasks", "list")[1], "it is no reason of what it does now"
    assert json.loads(run("tasks", "list", "--json")[1])[0]["error_message"].startswith(
        "requests to dutchie.com are blocked"
    )


def test_a_pause_ends_by_itself(run: Run, sql: Sql) -> None:
    code, out, _ = run("hosts", "pause", "dutchie.com", "--for", "15m", "--reason", "maintenance", "--json")
    left = datetime.fromisoformat(json.loads(out)["until"]) - datetime.now(UTC)
    assert (code, timedelta(minutes=13) < left <= timedelta(minutes=15)) == (0, True)
    assert "15 min" in run("hosts", "list")[1] or "14 min" in run("hosts", "list")[1]
    sql("UPDATE hosts SET paused_at = now() - interval '1 hour', paused_until = now()")
    assert run("hosts", "show", "dutchie.com")[1].startswith("dutchie.com: healthy\n")
    assert run("hosts", "pause", "dutchie.com", "--for", "soon")[0] != 0
    assert "future" in run("hosts", "pause", "dutchie.com", "--until", "2020-01-01")[2]
    assert "--for or --until" in run("hosts", "pause", "dutchie.com", "--for", "1h", "--until", "2099-01-01")[2]
    assert sql("SELECT paused_until <= now() FROM hosts WHERE host = 'dutchie.com'") == [(True,)]


def test_a_host_that_was_never_asked_is_paused(run: Run, sql: Sql) -> None:
    run("hosts", "set", "dutchie.com", "--rate", "2")
    code, out, err = run("hosts", "pause", "dutchie.de", "--reason", "not ours to ask")
    assert (code, out.startswith("dutchie.de: paused, no requests")) == (0, True)
    assert err == "Note: dutchie.de has not been requested so far; did you mean dutchie.com?\n"
    assert sql("SELECT rate, paused_reason FROM hosts WHERE host = 'dutchie.de'") == [(3.0, "not ours to ask")]
    sql(
        "INSERT INTO fetch_totals (host, verdict, requests, rotations, bytes, waited_ms, elapsed_ms)"
        " VALUES ('dutchie.com', 'ok', 1, 0, 0, 0, 0)"
    )
    assert run("hosts", "pause", "dutchie.com")[2] == ""


def test_a_host_is_removed_once_nobody_talks_to_it(run: Run, sql: Sql) -> None:
    run("hosts", "set", "dutchie.com", "--rate", "2")
    sql("INSERT INTO proxies (protocol, host, port) VALUES ('http', '10.0.0.1', 80)")
    sql(
        "INSERT INTO identity_leases (host, proxy_id, leased_at, expires_at)"
        " SELECT 'dutchie.com', id, now(), now() + interval '1 minute' FROM proxies"
    )
    sql(
        "INSERT INTO proxy_scores (host, proxy_id, good, bad, as_of) SELECT 'dutchie.com', id, 1, 0, now() FROM proxies"
    )
    sql("INSERT INTO profile_scores (host, profile, good, bad, as_of) VALUES ('dutchie.com', 'chrome', 1, 0, now())")
    code, out, err = run("hosts", "remove", "dutchie.com")
    assert (code, out) == (2, "")
    assert "dutchie.com has 1 active lease: pause it (`menuwatch hosts pause dutchie.com`)" in err
    sql("UPDATE identity_leases SET expires_at = now() - interval '1 second'")
    assert run("hosts", "remove", "dutchie.com") == (0, "Removed dutchie.com.\n", "")
    for table in ("hosts", "identity_leases", "proxy_scores", "profile_scores", "host_events"):
        assert sql(f"SELECT count(*) FROM {table}") == [(0,)]
    run("hosts", "pause", "dutchie.com")
    assert "dutchie.com is paused, and removing it would end the pause" in run("hosts", "remove", "dutchie.com")[2]


def test_what_a_host_put_off_is_told_and_made_due(run: Run, sql: Sql) -> None:
    run("hosts", "set", "dutchie.com", "--rate", "2")
    postponed = (
        ("cooling", "dutchie.com"),
        ("throttled", "dutchie.com"),
        ("blocked", "dutchie.com"),
        ("cooling", "dutchie.com.example"),
        (None, None),
    )
    for n, (code, host) in enumerate(postponed):
        sql(
            "INSERT INTO worker_tasks (role, payload, priority) VALUES ('store_discovery', %s::jsonb, 3)",
            f'{{"n": {n}}}',
        )
        sql(
            "UPDATE task_live SET state = 's', attempt = 1, scheduled_for = '2100-01-01 00:00:00+00', error_message = 'why',"
            " postpone_code = %s, postpone_host = %s WHERE error_message IS NULL",
            code,
            host,
        )
    _, out, err = run("hosts", "reset", "dutchie.com")
    assert out.startswith("dutchie.com: healthy\n")
    assert " ".join(err.split()) == (
        "3 postponed tasks wait until 2100-01-01 00:00:00 UTC at the latest: run them now with "
        "`menuwatch hosts reset dutchie.com --tasks` or `menuwatch tasks retry --error dutchie.com`."
    )
    run("hosts", "pause", "dutchie.com")
    code, out, err = run("hosts", "reset", "dutchie.com", "--tasks")
    assert (code, "dutchie.com are still blocked, so no task was made due." in err) == (0, True)
    found = json.loads(run("hosts", "resume", "dutchie.com", "--json")[1])
    assert (found["state"], found["tasks_put_off"], found["tasks_made_due"]) == ("healthy", 3, 0)
    sql("UPDATE task_live SET postpone_code = 'paused' WHERE postpone_code = 'throttled'")
    _, out, err = run("hosts", "resume", "dutchie.com")
    assert (out.splitlines()[-1], "2 postponed tasks wait until" in err) == ("1 postponed task made due now.", True)
    sql(
        "UPDATE task_live SET scheduled_for = '2100-01-01 00:00:00+00', postpone_code = 'throttled' WHERE postpone_code = 'paused'"
    )
    _, out, err = run("hosts", "resume", "dutchie.com", "--tasks")
    assert (out.splitlines()[-1], err) == ("3 postponed tasks made due now.", "")
    due = sql("SELECT priority FROM task_live WHERE state <> 's' OR scheduled_for <= clock_timestamp() ORDER BY id")
    assert due == [(3,), (3,), (3,)]


def test_the_doctor_reads_the_profiles_and_misses_a_worker(
    run: Run, sql: Sql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def finding(check: str) -> tuple[str, str, str | None]:
        (one,) = [one for one in json.loads(run("doctor", "--json")[1])["findings"] if one["check"] == check]
        return one["level"], one["detail"], one.get("mend")

    assert finding("profiles")[:2] == ("ok", "12 browsers, built in")
    file = tmp_path / "mine.toml"
    file.write_text("[[profile]]\nname = 'x'\ntarget = 'netscape4'\n")
    monkeypatch.setenv("PROFILES_FILE", str(file))
    level, detail, mend = finding("profiles")
    assert (level, str(file) in detail, "PROFILES_FILE" in str(mend)) == ("problem", True, True)
    assert run("doctor")[0] == 1
    monkeypatch.delenv("PROFILES_FILE")

    level, detail, mend = finding("workers")
    assert (level, detail) == ("critical", "No worker is running: workers start once a proxy is active.")
    assert str(mend).startswith("menuwatch proxies add ")
    sql("INSERT INTO proxies (host, port) VALUES ('127.0.0.1', 9)")
    level, detail, mend = finding("workers")
    assert (level, detail, "menuwatch worker" in str(mend)) == ("critical", "No worker is running.", True)
    sql("INSERT INTO worker_tasks (role, payload) VALUES ('store_discovery', '{}')")
    sql("INSERT INTO worker_registry (worker_id, friendly_name, host) VALUES ('a', 'A', 'here')")
    assert finding("workers")[:2] == ("ok", "1 alive")
    sql("UPDATE worker_registry SET last_heartbeat_at = now() - interval '121 seconds'")
    assert finding("workers")[1] == "No worker is running; 1 worker without a heartbeat. 1 task pending."
    sql("UPDATE worker_registry SET status = 'stopped'")
    assert finding("workers")[1] == "No worker is running. 1 task pending."


def test_the_doctor_fails_only_where_something_is_critical(run: Run, sql: Sql) -> None:
    code, out, _ = run("doctor")
    assert code == 1
    assert {line.split()[1] for line in out.splitlines() if line.startswith("critical")} == {"proxies", "workers"}
    sql("INSERT INTO worker_registry (worker_id, friendly_name, host) VALUES ('a', 'A', 'here')")
    sql("INSERT INTO proxies (host, port, is_active) VALUES ('127.0.0.1', 9, true)")
    code, out, _ = run("doctor")
    assert code == 0
    assert re.search("^warning .*no backup yet", out, re.MULTILINE), "warnings alone do not fail it"
    assert json.loads(run("doctor", "--json")[1])["ok"] is True
