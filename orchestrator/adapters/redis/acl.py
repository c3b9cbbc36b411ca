"""What each kind of process may do in Redis: rules for its access control list (RT-22).

One user per kind. None of them can configure, dump, flush or watch the server.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from orchestrator.ports.tasks import INTERNAL, QUEUES, SUBMISSIONS, TURNS

COMMANDS: Final = (
    "-@all",
    *("+@read", "+@write", "+@connection", "+@transaction", "+@pubsub", "+@blocking", "-@dangerous"),
    *("+eval", "+evalsha", "+script|load", "+script|exists", "+select", "+time", "+info"),
)
_OURS: Final = "parley:*"
_BINDINGS: Final = "_kombu.binding*"
_RESULTS: Final = "celery-task-meta-*"
_CELERY_EVENTS: Final = "/*celeryev*"


@dataclass(frozen=True, slots=True)
class RedisUser:
    """Names in the key and channel patterns of Redis."""

    name: str
    keys: tuple[str, ...]
    channels: tuple[str, ...]

    def rules(self) -> tuple[str, ...]:
        """What `ACL SETUSER` takes after name and password."""
        return (
            *("resetkeys", "resetchannels"),
            *(f"~{pattern}" for pattern in self.keys),
            *(f"&{pattern}" for pattern in self.channels),
            *COMMANDS,
        )


def _of(*queues: str) -> tuple[str, ...]:
    """The lists of queues: a priority is a suffix."""
    return tuple(f"{queue}*" for queue in queues)


USERS: Final[tuple[RedisUser, ...]] = (
    # Workers and beat.
    RedisUser(
        "parley-worker",
        (_OURS, _BINDINGS, *_of(*QUEUES), "unacked*", _RESULTS, "celery-taskset-meta-*"),
        (_OURS, _RESULTS, _CELERY_EVENTS, "/*pidbox*"),
    ),
    # The gateway: it wakes workers, and reads no queue's contents but by name.
    RedisUser("parley-gateway", (_OURS, _BINDINGS, *_of(TURNS, INTERNAL)), (_OURS,)),
    # Backends that use the queue contract: they submit, and read results.
    RedisUser("parley-sender", (_BINDINGS, *_of(SUBMISSIONS), _RESULTS), (_RESULTS,)),
    # Flower: events of workers and lengths of queues.
    RedisUser("parley-flower", (_BINDINGS, "celeryev.*", *_of(*QUEUES), "unacked*"), (_CELERY_EVENTS,)),
)


def write_acl_file(passwords: Mapping[str, str]) -> str:
    """The text of an ACL file for users by name; passwords stand in it as digests only.

    The default user is switched off.
    """
    lines = ["user default off resetkeys resetchannels -@all"]
    for user in USERS:
        digest = hashlib.sha256(passwords[user.name].encode()).hexdigest()
        lines.append(" ".join((f"user {user.name}", "on", f"#{digest}", *user.rules())))
    return "\n".join(lines) + "\n"
