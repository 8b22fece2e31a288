"""Structured logs: every line has an `action` and the ids that it is about.

A line logged during an attempt at a task has its `task_id` and `attempt`, the trace id of a worker's lines.

Paths, names and headers in them are untrusted. In `json` every non-ASCII character is escaped; in `console` everything that a
terminal would interpret is (control and format characters, line ends outside of tracebacks).

structlog is imported with the first line: most commands log nothing, and the import is a tenth of their start.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from functools import partial
from threading import Lock
from typing import Any, TextIO

from menuwatch.core.errors import Refused, unknown_value

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_FORMATS = ("console", "json")


ATTEMPT: ContextVar[tuple[int, int] | None] = ContextVar("attempt", default=None)
"""The task and the number of the attempt that the present code runs for; None outside of attempts."""

CAPTURED = logging.INFO
"""Lowest level of lines that are captured, whatever LOG_LEVEL is."""

Sink = Callable[[Mapping[str, Any]], None]
_sinks: list[Sink] = []
_level = logging.INFO
"""LOG_LEVEL of this process."""

_REPEAT_SECONDS = 10.0
"""Seconds between two equal lines of a library."""
_MESSAGES = 256
"""Number of library messages remembered."""


class _Libraries(logging.Handler):
    """Logs warnings and errors of libraries in our format.

    The same message is written once in _REPEAT_SECONDS, with the number suppressed since: when file descriptors run out, asyncio
    alone would write megabytes a second."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self._written: dict[tuple[str, str], tuple[float, int]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        # The message as the code has it, before its values are put in; asyncio puts details on the lines below the first.
        key = (record.name, str(record.msg).partition("\n")[0])
        now = time.monotonic()
        at, held = self._written.get(key, (float("-inf"), 0))
        if now - at < _REPEAT_SECONDS:
            self._written[key] = (at, held + 1)
            return
        if len(self._written) >= _MESSAGES:
            self._written.clear()
        self._written[key] = (now, 0)
        try:
            log = get_logger(record.name)
            write = log.error if record.levelno >= logging.ERROR else log.warning
            more = {"suppressed": held} if held else {}
            write(record.getMessage(), action="library_log", library=record.name, exc_info=record.exc_info, **more)
        except Exception:
            self.handleError(record)


class _Stderr:
    """Writes to whatever sys.stderr is at that moment, so that redirection and capture work after configuration."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


class _Verbatim:
    """A value that is printed as this text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _printable(text: str, keep: str = "") -> str:
    """The text with escapes (`\\x1b`, `\\u202e`) for whatever is not printable and not in `keep`."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in keep else char.encode("unicode_escape").decode() for char in text
    )


_BLOCKS = ("exception", "stack")
"""Values of several lines, which the console prints below the others."""


def for_console(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """structlog processor: leaves nothing in keys and values that a terminal would act on."""
    printable: dict[str, Any] = {}
    for key, value in event.items():
        if key in _BLOCKS:
            value = _printable(str(value), "\n\t")
        elif key == "event":
            value = _printable(str(value))
        elif not isinstance(value, str):
            value = _Verbatim(_printable(repr(value)))
        elif not value.isprintable():
            value = _Verbatim(repr(value))
        printable[_printable(key)] = value
    return printable


def _add_attempt(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """structlog processor: names the attempt. A line about another task keeps the id that it has; `attempt` beside the id of a task
    always is an attempt at that task."""
    of = ATTEMPT.get()
    if of is not None and event.setdefault("task_id", of[0]) == of[0]:
        event["attempt"] = of[1]
    return event


def _capture(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """structlog processor: passes the line to the sinks, and drops it if LOG_LEVEL is higher."""
    if _sinks:
        level = _LEVELS.get(event["level"], logging.ERROR)
        if level >= CAPTURED:
            for sink in _sinks:
                sink(event)
        if level < _level:
            raise _structlog().DropEvent
    return event


def outside_attempt() -> Context:
    """A copy of the present context that belongs to no attempt: for a background task that an attempt starts for others as well."""
    context = copy_context()
    context.run(ATTEMPT.set, None)
    return context


@contextmanager
def capture(sink: Sink) -> Iterator[None]:
    """Passes every line of CAPTURED and above to `sink` for as long as the context lasts. A sink may be called in any thread; it must
    not raise, nor change the line."""
    _sinks.append(sink)
    _set_threshold()
    try:
        yield
    finally:
        _sinks.remove(sink)
        _set_threshold()


def _set_threshold() -> None:
    """Has the loggers pass on what standard error or a sink needs."""
    structlog = _structlog()
    if structlog.is_configured():
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(_threshold()))


def _threshold() -> int:
    return min(_level, CAPTURED) if _sinks else _level


def configure(log_format: str = "console", level: str = "info", stream: TextIO | None = None) -> None:
    """Sets up logging for the process, what libraries log included; logs go to standard error, so that standard output stays for
    results."""
    if log_format not in _FORMATS:
        raise Refused(unknown_value("LOG_FORMAT", log_format, _FORMATS))
    if level not in _LEVELS:
        raise Refused(unknown_value("LOG_LEVEL", level, _LEVELS))
    global _level, _set_up
    _level = _LEVELS[level]
    _set_up = partial(_set_structlog_up, log_format, stream)
    if "structlog" in sys.modules:
        _structlog()
    root = logging.getLogger()
    for handler in [each for each in root.handlers if isinstance(each, _Libraries)]:
        root.removeHandler(handler)
    # What libraries say below a warning is about their own insides.
    root.addHandler(_Libraries(max(_LEVELS[level], logging.WARNING)))


def is_configured() -> bool:
    """Whether this process has set up logging, by `configure` or by means of its own."""
    return _set_up is not None or bool(_structlog().is_configured())


_set_up: Callable[[], None] | None = None
"""What is left to do of the last `configure`."""
_setting_up = Lock()


def _structlog() -> Any:
    """The library, imported and set up."""
    import structlog

    global _set_up
    if _set_up is not None:
        with _setting_up:
            if _set_up is not None:
                _set_up()
                _set_up = None
    return structlog


def _set_structlog_up(log_format: str, stream: TextIO | None) -> None:
    import structlog

    target: Any = stream if stream is not None else _Stderr()
    renderers: list[Any] = [structlog.processors.JSONRenderer()]
    if log_format == "console":
        renderers = [for_console, structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _add_attempt,
            _capture,
            *renderers,
        ],
        logger_factory=structlog.PrintLoggerFactory(target),
        wrapper_class=structlog.make_filtering_bound_logger(_threshold()),
        cache_logger_on_first_use=False,
    )


class _Logger:
    """A logger of structlog, which is made with each line."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(_structlog().get_logger(self._name), name)


def get_logger(name: str) -> Any:
    """A logger; call it as `log.info("sentence", action="task_completed", task_id=…)`."""
    return _Logger(name)
