"""One logger factory for the whole system: messages are sentences, facts are fields."""

import structlog


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    return structlog.get_logger(name)
