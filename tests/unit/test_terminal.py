"""What strangers wrote never acts on a terminal: in results, in errors, in the log."""

from __future__ import annotations

import csv
import io
import json
import logging
import os
import pty
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from decimal import Decimal
from typing import Any

import pytest

from menuwatch.cli import main, output
from menuwatch.cli.output import Column, Format
from menuwatch.core import logging as telemetry

HOSTILE = "\x1b]0;pwned\x07\x1b[2J\x7f\x9b31m\u202e\u2066"
FORBIDDEN = frozenset(HOSTILE) - frozenset("]0;pwned[2J31m")

_END = "(the end)"
Screen = Callable[[], str]


def _acts(text: str) -> set[str]:
    return FORBIDDEN & set(text)


@contextmanager
def terminal() -> Iterator[Screen]:
    """Standard output is a terminal; gives what was written to it so far."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w", encoding="utf-8") as screen, redirect_stdout(screen):

        def shown() -> str:
            screen.write(_END)
            screen.flush()
            text = b""
            while not text.endswith(_END.encode()):
                assert select.select([ours], [], [], 10)[0], "what was written comes"
                text += os.read(ours, 65_536)
            return text.decode().removesuffix(_END)

        yield shown
    os.close(ours)


ROWS = [{"id": 1, "name": f"a{HOSTILE}b", "tags": [HOSTILE]}]
COLUMNS = (Column("#", "id"), Column("Name", "name"))


@pytest.mark.parametrize("fmt", list(Format))
def test_no_list_acts_on_a_terminal(fmt: Format) -> None:
    with terminal() as screen:
        output.print_list(ROWS, COLUMNS, fmt)
        shown = screen()
    assert "pwned" in shown
    assert _acts(shown) == set()


def test_nor_does_text_for_people_or_a_document_of_others() -> None:
    with terminal() as screen:
        output.console.print(f"said {HOSTILE}", markup=False)
        output.standard_output().write(f'{{"name": "{HOSTILE}"}}\n'.encode())
        shown = screen()
    assert shown.count("pwned") == 2
    assert _acts(shown) == set()


def test_a_spreadsheet_runs_no_text_and_numbers_are_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    row = {"id": -3, "name": "=1+1", "change": Decimal("-5.2"), "said": "-5.2", "note": "-5.2%"}
    output.print_list([row], COLUMNS, Format.CSV)
    assert capsys.readouterr().out == "id,name,change,said,note\n-3,'=1+1,-5.2,-5.2,'-5.2%\n"


def test_a_file_gets_csv_and_documents_whole(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    output.print_list(ROWS, COLUMNS, Format.CSV)
    sys.stdout.flush()
    row = next(csv.DictReader(io.StringIO(capfdbinary.readouterr().out.decode(), newline="")))
    assert row["name"] == f"a{HOSTILE}b"
    output.standard_output().write(HOSTILE.encode())
    sys.stdout.flush()
    assert capfdbinary.readouterr().out.decode() == HOSTILE


def test_json_is_the_same_value_without_them(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json(ROWS)
    written = capsys.readouterr().out
    assert _acts(written) == set()
    assert json.loads(written) == ROWS


def test_messages_about_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main.app(["payloads", "show", f"--no{HOSTILE}"])
    said = capsys.readouterr().err
    assert end.value.code == 2
    assert "--no" in said
    assert _acts(said) == set()


def test_a_traceback_that_ends_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        _fail()
    except ValueError as error:
        main.show_fault(error)
    said = capsys.readouterr().err
    assert said.startswith("Traceback (most recent call last):\n")
    assert "\nValueError: first\n" in said
    assert _acts(said) == set()


class _Hostile:
    def __repr__(self) -> str:
        return HOSTILE


def _fail() -> None:
    raise ValueError(f"first\n{HOSTILE}")


def _logged(fmt: str, say: Callable[[Any], None]) -> str:
    stream = io.StringIO()
    telemetry.configure(fmt, "info", stream)
    say(telemetry.get_logger("x"))
    return stream.getvalue()


def _everything(log: Any) -> None:
    log.info(HOSTILE, action="x", path=f"/{HOSTILE}", spaced=f"a {HOSTILE}", nested={"a": [HOSTILE]}, odd=_Hostile())
    log.info("keys", **{HOSTILE: 1})
    try:
        _fail()
    except ValueError:
        log.exception("failed", action="x")
        logging.getLogger("asyncio").exception("in a library %s", HOSTILE)


@pytest.mark.parametrize("fmt", ["console", "json"])
def test_no_line_of_the_log_acts_on_a_terminal(fmt: str) -> None:
    text = _logged(fmt, _everything)
    assert text.count("pwned") >= 8
    assert _acts(text) == set()


def test_a_line_of_the_log_stays_one_line_and_a_traceback_is_readable() -> None:
    assert _logged("console", lambda log: log.info("a\nb", name="c\nd", plain="e")).count("\n") == 1
    text = _logged("console", _everything)
    assert "\nTraceback (most recent call last):\n" in text
    assert "\nValueError: first\n" in text


def test_lines_of_libraries_go_the_way_of_ours() -> None:
    def say(_: Any) -> None:
        # A name of no library: whoever starts uvicorn in the same process sets the level of its loggers.
        logging.getLogger("library.of.tests").warning("odd %s", "request")
        logging.getLogger("library.of.tests").info("not of interest")

    (line,) = _logged("json", say).splitlines()
    found = json.loads(line)
    assert (found["event"], found["level"], found["action"], found["library"]) == (
        "odd request", "warning", "library_log", "library.of.tests"
    )  # fmt: skip
