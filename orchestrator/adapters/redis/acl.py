"""Redis access control lists, with one user for each kind of process (RT-22).

The rules use Redis 7 syntax. No user can configure, dump, flush or monitor the server.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from orchestrator.adapters.redis.wakeup import READY
from orchestrator.ports.tasks import INTERNAL, QUEUES, SUBMISSIONS, TURNS, URGENT

_CONNECTING: Final = ("-@all", "+@connection", "-@dangerous", "+select")
_EVERYTHING: Final = (
    *("-@all", "+@read", "+@write", "+@connection", "+@transaction", "+@pubsub", "+@blocking", "-@dangerous"),
    *("+eval", "+evalsha", "+script|load", "+script|exists", "+select", "+time", "+info"),
)
"""Commands for workers and the gateway, which key patterns restrict further."""
_LISTENING: Final = ("+subscribe", "+psubscribe", "+unsubscribe", "+punsubscribe")
_DECLARING: Final = ("+multi", "+exec", "+discard", "+sadd", "+srem", "+smembers", "+scard", "+sismember")
"""Commands with which Celery records how queues are bound to exchanges."""
_KEEPING_A_BOOK: Final = (
    *(
        "+set",
        "+get",
        "+del",
        "+time",
        "+zadd",
        "+zrem",
        "+zrange",
        "+zrangebyscore",
        "+hget",
        "+hdel",
        "+hset",
    ),
    *("+watch", "+unwatch", "+eval", "+evalsha", "+script|load", "+script|exists"),
)
"""Commands with which Celery consumers restore unacknowledged messages and clean up abandoned queues."""
_ASKING: Final = ("+publish", "+brpop", "+rpop", "+expire", "+pexpire")
"""Commands with which Flower inspects workers. Workers respond only if PARLEY_REMOTE_CONTROL is on."""
_COUNTING: Final = ("+llen", "+zcard", "+scard", "+hlen", "+type", "+exists")

_OURS: Final = "parley:*"
_BINDINGS: Final = "_kombu.binding*"
_RESULTS: Final = "celery-task-meta-*"
_GROUPS: Final = "celery-taskset-meta-*"
"""Keys of group results and chord counters."""
_CELERY_EVENTS: Final = "/0.celeryev/*"
"""The pattern to which Celery subscribes, with the number of the database. Redis compares it literally."""
_REMOTE_CONTROL: Final = "/*celery.pidbox*"
_BROADCASTS: Final = "/0.celery.pidbox"
_MAILBOXES: Final = "*.celery.pidbox*"
_REPLIES: Final = "*.reply.celery.pidbox*"


@dataclass(frozen=True, slots=True)
class RedisUser:
    """A Redis user.

    Args:
        keys, channels: Redis patterns.
        commands: rules that are applied to an empty set of commands.
        further: selectors with separate keys, channels and commands.
    """

    name: str
    keys: tuple[str, ...]
    channels: tuple[str, ...] = ()
    commands: tuple[str, ...] = _EVERYTHING
    further: tuple[str, ...] = ()

    def rules(self) -> tuple[str, ...]:
        """Return the arguments of `ACL SETUSER` that follow the name and the password."""
        return (
            *("resetkeys", "resetchannels"),
            *(key if key.startswith("%") else f"~{key}" for key in self.keys),
            *(f"&{pattern}" for pattern in self.channels),
            *self.commands,
            *(f"({rules})" for rules in self.further),
        )


def _of(*queues: str) -> tuple[str, ...]:
    """Return key patterns for the lists of these queues. Each priority adds a suffix."""
    return tuple(f"{queue}*" for queue in queues)


def _read_only(*queues: str) -> tuple[str, ...]:
    return tuple(f"%R~{name}" for name in _of(*queues))


USERS: Final[tuple[RedisUser, ...]] = (
    # Workers and beat. They may push to any list, because callbacks go to senders' queues, which can have any
    # name.
    RedisUser(
        "parley-worker",
        (_OURS, _BINDINGS, *_of(*QUEUES), "unacked*", _RESULTS, _GROUPS, _MAILBOXES),
        (_OURS, _RESULTS, _GROUPS, _CELERY_EVENTS, _REMOTE_CONTROL, _BROADCASTS),
        further=("~* +lpush",),
    ),
    # The gateway wakes workers. It cannot read messages that backends submit.
    RedisUser("parley-gateway", (_OURS, _BINDINGS, *_of(TURNS, INTERNAL, URGENT)), (_OURS,)),
    # Backends that use Celery. They can submit, read results, send groups and chords, and revoke, but not
    # consume.
    RedisUser(
        "parley-sender",
        (_BINDINGS, *_of(SUBMISSIONS), _RESULTS),
        (_RESULTS, _GROUPS),
        (*_CONNECTING, *_LISTENING, *_DECLARING, "+lpush", "+llen", "+get", "+mget", "+del"),
        (f"~{_GROUPS} &{_GROUPS} +set +setex +get +del +expire +publish", f"&{_REMOTE_CONTROL} +publish"),
    ),
    # Flower reads worker events and queue lengths, but cannot read messages.
    RedisUser(
        "parley-flower",
        (_BINDINGS, "celeryev.*", _REPLIES, *_read_only(*QUEUES)),
        (_CELERY_EVENTS, _REMOTE_CONTROL),
        (*_CONNECTING, *_LISTENING, *_DECLARING, *_COUNTING, *_KEEPING_A_BOOK, *_ASKING),
    ),
    # Autoscalers. Their keys are not read-only, because KEDA runs a script, which counts as a write.
    RedisUser(
        "parley-scaler",
        (READY, *_of(*QUEUES)),
        commands=(*_CONNECTING, *_COUNTING, "+eval", "+evalsha", "+script|load"),
    ),
    # Health probes.
    RedisUser("parley-probe", (), commands=("-@all", "+ping", "+select")),
)


def write_acl_file(passwords: Mapping[str, str]) -> str:
    """Return an ACL file with digests of these passwords, by user name. The default user is disabled."""
    return _write(lambda name: f"#{hashlib.sha256(passwords[name].encode()).hexdigest()}")


def write_template() -> str:
    """Return an ACL file with ``@name@`` placeholders for plain passwords, for a shell script to replace."""
    return _write(lambda name: f">@{name}@")


def _write(password: Callable[[str], str]) -> str:
    lines = ["user default off resetkeys resetchannels -@all"]
    lines += [" ".join((f"user {user.name}", "on", password(user.name), *user.rules())) for user in USERS]
    return "\n".join(lines) + "\n"
