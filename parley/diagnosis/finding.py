from collections.abc import Callable, Iterator
from dataclasses import dataclass

import psycopg
import redis

from orchestrator.errors import ParleyError
from orchestrator.redaction import hide_secrets
from orchestrator.types import JsonObject


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check.

    `fine`: True if the check passed, False if it failed, or None for a note. `remedy`: the fix, or empty. Secrets in
    `message` are hidden.
    """

    name: str
    fine: bool | None
    message: str
    remedy: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", hide_secrets(self.message))

    def as_json(self) -> JsonObject:
        state = {True: "ok", False: "bad", None: "note"}[self.fine]
        return {"name": self.name, "state": state, "message": self.message, "remedy": self.remedy}


def well(name: str, message: str) -> Finding:
    return Finding(name, True, message)


def bad(name: str, message: str, remedy: str) -> Finding:
    return Finding(name, False, message, remedy)


def note(name: str, message: str, remedy: str = "") -> Finding:
    return Finding(name, None, message, remedy)


def attempt(name: str, check: Callable[[], Iterator[Finding]], remedy: str) -> Iterator[Finding]:
    """Yield a check's findings. If the check raises a Parley, store or OS error, yield the error with `remedy`."""
    try:
        yield from check()
    except (ParleyError, psycopg.Error, redis.RedisError, OSError) as error:
        yield bad(name, " ".join(str(error).split()), remedy)
