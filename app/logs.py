"""The log: one event a line on standard error, for people or as JSON."""

from __future__ import annotations

import logging
import sys

import structlog

from app.settings import Settings


def configure(settings: Settings) -> None:
    """Set the form of the log.  Tracebacks are plain: local variables may hold tokens."""
    form: list[structlog.typing.Processor]
    if settings.log_json:
        form = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    else:
        plain = structlog.dev.plain_traceback
        form = [structlog.dev.ConsoleRenderer(colors=False, exception_formatter=plain)]
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *form,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
    )
