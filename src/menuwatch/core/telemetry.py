"""Structured logs: every line has an `action` and the ids that it is about."""

from __future__ import annotations

import logging
import sys
from typing import Any, TextIO

import structlog

from menuwatch.core.errors import Refused

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_FORMATS = ("console", "json")


class _Stderr:
    """Writes to whatever sys.stderr is at that moment, so that redirection and capture work after configuration."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


def configure(log_format: str = "console", level: str = "info", stream: TextIO | None = None) -> None:
    """Sets up logging for the process; logs go to standard error, so that standard output stays for results."""
    if log_format not in _FORMATS:
        raise Refused(f"LOG_FORMAT={log_format!r} cannot be used: it is one of {', '.join(_FORMATS)}")
    if level not in _LEVELS:
        raise Refused(f"LOG_LEVEL={level!r} cannot be used: it is one of {', '.join(_LEVELS)}")
    target: Any = stream if stream is not None else _Stderr()
    renderer: Any = structlog.processors.JSONRenderer()
    if log_format == "console":
        renderer = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(target),
        cache_logger_on_first_use=False,
    )


def get_logger(name: str) -> Any:
    """A logger; call it as `log.info("sentence", action="task_completed", task_id=…)`."""
    return structlog.get_logger(name)
