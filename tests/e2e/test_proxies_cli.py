"""`menuwatch proxies` and `doctor` as a person types them, on a real database, through real proxies."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from menuwatch.cli import main
from menuwatch.sim.process import Simulator

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    """A market with three proxies, the last of them dead. It has a thread of its own: commands have their own event loops."""
    ready, done = threading.Event(), threading.Event()
    running: list[Simulator] = []

    async def serve() -> None:
        async with Simulator(stores=1, products=5, seed=4, proxies=3) as made:
            await made.break_proxy(2, "dead")
            running.append(made)
            ready.set()
            await asyncio.to_thread(done.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert ready.wait(30)
    yield running[0]
    done.set()
    thread.join(10)


@pytest.fixture(autouse=True)
def surroundings(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, simulator: Simulator
) -> Iterator[None]:
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("MENUWATCH_HOME", str(tmp_path))
    monkeypatch.setenv("DUTCHIE_BASE_URL", simulator.base_url)
    monkeypatch.setenv("FETCH_TIMEOUT_SECONDS", "5")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], simulator: Simulator) -> Run:
    def command(*arguments: str, group: str = "proxies", given: bytes | None = None) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["menuwatch", *([group] if group else []), *arguments])
        if given is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        code: Any = 0
        try:
            main.main()
        except SystemExit as end:
            code = end.code or 0
        said = capsys.readouterr()
        assert not any(proxy.password in said.out + said.err for proxy in simulator.proxies)
        assert "S3cret" not in said.out + said.err
        return code, said.out, said.err

    return command


def test_one_that_answers_is_added_and_one_that_does_not_is_added_inactive(run: Run, simulator: Simulator) -> None:
    assert run("add", simulator.proxies[0].url, "--state", "az") == (
        0,
        f"Added proxy 1: {simulator.proxies[0].protocol}://user0@127.0.0.1:{simulator.proxies[0].port}\n",
        "",
    )
    code, out, err = run("add", simulator.proxies[2].url)
    assert (code, out.startswith("Added proxy 2: ")) == (1, True)
    assert "Inactive, probed again automatically: the proxy does not respond" in err
    assert run("add", simulator.proxies[2].url, "--force")[0] == 0
    code, out, _ = run("list", "--json")
    assert [(row["id"], row["status"], row["state"]) for row in json.loads(out)] == [
        (1, "active", "AZ"),
        (2, "active", None),
    ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["add", "http://me:S3cret@gate.example"], "the proxy has no port"),
        (["add", "gate.example:1", "gate.example:x:me:S3cret"], "proxy 2 of 2: the port of a proxy"),
        (["add", "gate.example:1", "--state", "ZZ"], "ZZ is not a state"),
        (["add", "gate.example:1", "--country", "UK"], "the United Kingdom is GB"),
        (["add", "gate.example:1", "--timezone", "Arizona"], "unknown time zone 'Arizona': use an IANA name"),
        (["add", "gate.example:1", "--url", "ftp://x"], "must start with http:// or https://"),
        (["import", "/nowhere/list"], "/nowhere/list cannot be read: No such file or directory"),
        (["enable", "7"], "proxy 7 does not exist"),
        (["disable", "7"], "proxy 7 does not exist"),
        (["remove", "7"], "proxy 7 does not exist"),
        (["seal"], "SECRET_KEY is not set: `menuwatch proxies key` generates a key"),
        (["list", "--json", "--format", "csv"], "mutually exclusive"),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_added(run: Run, arguments: list[str], says: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert says in err
    assert json.loads(run("list", "--json")[1]) == []


def test_a_list_is_imported_but_for_its_bad_lines(run: Run, simulator: Simulator, tmp_path: Path) -> None:
    one, two, dead = simulator.proxies
    lines = ["# ours", f"{one.host}:{one.port}:{one.username}:{one.password}", "", "gate.example:x:me:S3cret", dead.url]
    file = tmp_path / "list.txt"
    file.write_text("\n".join(lines))
    code, out, err = run("import", str(file))
    assert (code, out) == (1, "2 added, 0 updated, 1 rejected, 1 inactive (failed their test)\n")
    rejected, inactive = err.splitlines()
    assert rejected.startswith("line 4: the port of a proxy is a number from 1 to 65535")
    assert inactive.startswith("proxy ")
    assert "does not respond" in inactive
    table = f'protocol;ip;port;user;pass;region\r\n{two.protocol};{two.host};{two.port};{two.username};"{two.password}";CO\r\n'
    code, out, err = run("import", "-", given=b"\xef\xbb\xbf" + table.encode())
    assert (code, out, err) == (0, "1 added, 0 updated, 0 rejected, 0 inactive\n", "")
    code, out, _ = run("import", "-", "--no-test", "--json", given=f"{two.url}\n{two.url}\n?".encode())
    found = json.loads(out)
    assert code == 1
    assert (found["added"], found["updated"], found["repeated"]) == (0, 1, [1])
    assert [line["line"] for line in found["rejected"]] == [3]
    assert [(row["line"], row["created"], row["active"]) for row in found["proxies"]] == [(2, False, True)]
    code, out, err = run("import", "-", given=dead.url.encode())
    assert (code, out) == (1, "0 added, 1 updated, 0 rejected, 1 inactive (failed their test)\n")
    assert run("import", "-", "--no-test", given=dead.url.encode())[0] == 0
    assert "the list is empty" in run("import", "-", given=b"# nothing\n")[2]


def test_out_and_back(run: Run, simulator: Simulator) -> None:
    for proxy in simulator.proxies:
        run("add", proxy.url, "--force")
    assert run("list", "--inactive") == (0, "", "All proxies are active.\n")
    code, out, _ = run("disable", "1", "3", "--reason", "the bill")
    assert (code, [line.partition(":")[0] for line in out.splitlines()]) == (
        0,
        ["Disabled proxy 1", "Disabled proxy 3"],
    )
    rows = list(csv.DictReader(io.StringIO(run("list", "--inactive", "--format", "csv")[1])))
    assert [(row["id"], row["status"], row["reason"]) for row in rows] == [
        ("1", "disabled", "the bill"),
        ("3", "disabled", "the bill"),
    ]
    code, out, err = run("enable", "1", "3")
    one, _, dead = simulator.proxies
    assert (code, out) == (1, f"Enabled proxy 1: {one.protocol}://user0@127.0.0.1:{one.port}\n")
    assert err.startswith(
        f"Proxy 3 stays inactive and is probed again automatically: {dead.protocol}://user2@127.0.0.1:{dead.port}: "
        "the proxy does not respond"
    )
    (row,) = json.loads(run("list", "--inactive", "--json")[1])
    assert (row["id"], row["status"], row["disabled_at"]) == (3, "inactive", None)
    table = run("list", "--inactive")[1]
    assert "the proxy does not respond" in table
    assert "in " in table.splitlines()[1], "when it is tried again"
    assert run("remove", "3")[1].startswith("Removed proxy 3: ")
    assert [row["id"] for row in json.loads(run("list", "--json")[1])] == [1, 2]


def test_a_test_of_many_says_which_do_not_answer(run: Run, simulator: Simulator) -> None:
    for proxy in simulator.proxies:
        run("add", proxy.url, "--force")
    code, out, _ = run("test", "--json")
    assert (code, [row["ok"] for row in json.loads(out)]) == (1, [True, True, False])
    assert run("test", "1", "2")[0] == 0


def test_sealed_passwords(run: Run, simulator: Simulator, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run("add", simulator.proxies[0].url, "--force")
    key = run("key")[1].strip()
    monkeypatch.setenv("SECRET_KEY", key)
    assert run("seal")[1] == "Encrypted 1 of 1 password.\n"
    assert run("seal")[1] == "Encrypted 0 of 1 password; the others already used this key.\n"
    assert run("test")[0] == 0
    with psycopg.connect(database_url) as conn:
        assert str(conn.execute("SELECT password FROM proxies").fetchone()).startswith("('fernet:")
    for value, says in (("", "SECRET_KEY is not set"), (run("key")[1].strip(), "no key in SECRET_KEY decrypts it")):
        monkeypatch.setenv("SECRET_KEY", value)
        for arguments in (["test"], ["enable", "1"]):
            code, out, err = run(*arguments)
            assert (code, out, says in err) == (2, "", True)
            one = simulator.proxies[0]
            assert f"the password of proxy 1 ({one.protocol}://user0@127.0.0.1:{one.port}) is encrypted, and " in err
            assert "remove it with `menuwatch proxies remove 1`" in err
        code, _, err = run("worker", group="")
        assert (code, says in err) == (2, True)
        code, out, _ = run("doctor", "--json", group="")
        (found,) = [one for one in json.loads(out)["findings"] if one["check"] == "proxies"]
        assert (code, found["level"], says in found["detail"]) == (1, "problem", True)
    monkeypatch.setenv("SECRET_KEY", "hunter2")
    code, _, err = run("list")
    assert (code, "hunter2" in err, "menuwatch proxies key" in err) == (2, False, True)


def test_doctor_names_the_proxies_that_fail(run: Run, simulator: Simulator, database_url: str) -> None:
    def found() -> dict[str, Any]:
        code, out, _ = run("doctor", "--json", group="")
        assert (code, json.loads(out)["ok"]) == (1, False), "no worker runs"
        (one,) = [one for one in json.loads(out)["findings"] if one["check"] == "proxies"]
        return dict(one)

    assert found()["detail"] == "no active proxy; workers will not start"
    for proxy in simulator.proxies:
        run("add", proxy.url, "--force")
    assert (found()["level"], found()["detail"]) == ("ok", "3 of 3 active")
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute("UPDATE proxies SET failure_count = 4, last_error = 'the proxy does not respond' WHERE id = 2")
        conn.execute("UPDATE proxies SET is_active = false, probe_at = now() + interval '40 s' WHERE id = 3")
    one = found()
    assert (one["level"], one["detail"]) == (
        "warning",
        "2 of 3 active; 1 inactive; failing: proxy 2 (the proxy does not respond)",
    )
    assert "menuwatch proxies list --inactive" in one["mend"]
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute("UPDATE proxies SET is_active = false, probe_at = now() + interval '40 s'")
    assert re.fullmatch(r"no active proxy: 3 inactive, next probe in (40|3\d) s; network roles wait", found()["detail"])


def test_doctor_counts_the_passwords_that_lie_in_clear(
    run: Run, simulator: Simulator, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found() -> list[tuple[str, str, str | None]]:
        findings = json.loads(run("doctor", "--json", group="")[1])["findings"]
        return [(one["level"], one["detail"], one["mend"]) for one in findings if one["check"] == "proxy passwords"]

    monkeypatch.delenv("SECRET_KEY", raising=False)
    run("add", "http://127.0.0.1:1", "--force")
    assert found() == [], "no password, nothing to say"
    lines = "\n".join(proxy.url for proxy in simulator.proxies[:2])
    code, out, _ = run("add", "-", "--force", "--json", "--state", "az", given=f"{lines}\n\n".encode())
    assert (code, len(json.loads(out)["proxies"])) == (0, 2)
    ((level, detail, mend),) = found()
    assert (level, detail) == ("warning", "2 of 2 passwords stored in plain text")
    assert mend is not None
    assert "menuwatch proxies key" in mend
    monkeypatch.setenv("SECRET_KEY", run("key")[1].strip())
    ((_, _, mend),) = found()
    assert mend == "run `menuwatch proxies seal`"
    run("seal")
    assert found() == [("ok", "0 of 2 passwords stored in plain text", None)]
    code, _, err = run("add", "-", given=b"\n")
    assert (code, "standard input is empty" in err) == (2, True)


def test_list_filters_and_location(run: Run) -> None:
    run("add", "203.0.113.1:80", "socks5://203.0.113.2:1080", "--force")
    run("disable", "1")

    def ids(*options: str) -> list[int]:
        return [row["id"] for row in json.loads(run("list", "--json", *options)[1])]

    assert (ids("--status", "disabled"), ids("--status", "active"), ids("--search", "socks5")) == ([1], [2], [2])
    assert run("list", "--search", "Phoenix") == (0, "", "No matching proxies.\n")
    assert run("list", "--status", "asleep")[0] == 2
    assert run("set", "2", "--city", "Phoenix", "--state", "az")[:2] == (
        0,
        "Changed proxy 2: socks5://203.0.113.2:1080\n",
    )
    assert ids("--search", "phoenix") == [2]
    (proxy,) = json.loads(run("set", "2", "--city", "", "--json")[1])
    assert (proxy["city"], proxy["state"]) == (None, "AZ")
    code, _, err = run("set", "2", "--state", "Arizona")
    assert (code, "two letters" in err) == (2, True)
    assert run("set", "2")[0] == 2


def test_many_are_chosen_by_filter_after_a_preview(run: Run) -> None:
    run("add", *[f"203.0.113.{n}:80" for n in range(1, 5)], "--force")

    def ids(*options: str) -> list[int]:
        return [row["id"] for row in json.loads(run("list", "--json", *options)[1])]

    assert run("tag", "Pool-A", "1", "2") == (0, "2 proxies tagged.\n", "")
    assert run("tag", "pool-a", "2", "3")[1] == "1 proxy tagged; skipped: 1 tagged.\n"
    assert ids("--tag", "pool-A") == [1, 2, 3]
    code, _, err = run("tag", "pool-a", "9")
    assert (code, "1 proxy does not exist" in err) == (2, True)
    code, _, err = run("tag", "no/slash", "1")
    assert (code, "invalid tag 'no/slash'" in err) == (2, True)

    assert run("disable", "--tag", "pool-a", "--dry-run") == (0, "3 proxies would be disabled.\n", "")
    assert ids("--status", "disabled") == []
    code, _, err = run("disable", "--tag", "pool-a", given=b"")
    assert (code, "Disable 3 proxies? No TTY for confirmation; pass --yes." in err) == (2, True)
    code, out, _ = run("disable", "--tag", "pool-a", "--yes", "--reason", "rest")
    assert (code, len(out.splitlines())) == (0, 3)
    assert ids("--status", "disabled") == [1, 2, 3]
    plan = json.loads(run("disable", "--all", "--dry-run", "--json")[1])
    assert (plan["would"], plan["ids"], plan["skipped"]) == (1, [4], {"disabled": 3})
    assert run("test", "--status", "disabled") == (0, "0 proxies would be tested; skipped: 3 disabled.\n", "")
    assert run("enable", "--search", "203.0.113.1", "--dry-run")[1] == "1 proxy would be enabled.\n"
    assert run("enable", "--tag", "pool-a", "--yes", "--force")[0] == 0
    assert ids("--status", "active") == [1, 2, 3, 4]
    assert run("untag", "pool-a", "--all", "--yes")[1] == "3 proxies untagged.\n", "those that have it"
    assert run("set", "4", "--tags", "b, a")[0] == 0
    assert "Tags" in run("show", "4")[1]
    assert json.loads(run("show", "4", "--json")[1])["tags"] == ["a", "b"]

    for arguments in (
        ["disable"],
        ["remove", "--all", "--tag", "x"],
        ["remove", "1", "--all"],
        ["remove", "1", "--tag", "x"],
    ):
        assert run(*arguments)[0] == 2, arguments
    assert len(run("remove", "--all", "-y")[1].splitlines()) == 4
    assert ids() == []


def test_one_is_shown_with_its_requests(run: Run, simulator: Simulator) -> None:
    run("add", simulator.proxies[0].url)
    assert "0 requests" in run("show", "1")[1]
    run("test", "1")
    shown = run("show", "1")[1]
    assert "1 request, 0 failed, 0 refused (block rate 0.0 %)" in shown
    assert "Peak (req/s)" in shown
    statistics = json.loads(run("show", "1", "--json")[1])["last_24_hours"]
    assert (statistics["requests"], statistics["hosts"][0]["succeeded"], statistics["hours"][-1]["succeeded"]) == (
        1,
        1,
        1,
    )
