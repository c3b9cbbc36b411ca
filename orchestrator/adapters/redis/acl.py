"""Rights of each kind of process in Redis: rules for its access control list (RT-22).

One user per kind, in words of Redis 7. None of them can configure, dump, flush or watch the server.
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
"""For ports and Celery's workers; which keys it is used on is the other half."""
_LISTENING: Final = ("+subscribe", "+psubscribe", "+unsubscribe", "+punsubscribe")
_DECLARING: Final = ("+multi", "+exec", "+discard", "+sadd", "+srem", "+smembers", "+scard", "+sismember")
"""Celery writes down which queue hangs on which exchange."""
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
"""Celery's consumers look after what is taken and unfinished, and after queues that nobody reads any more."""
_ASKING: Final = ("+publish", "+brpop", "+rpop", "+expire", "+pexpire")
"""Flower asks workers how they are, which obey nobody unless PARLEY_REMOTE_CONTROL is on."""
_COUNTING: Final = ("+llen", "+zcard", "+scard", "+hlen", "+type", "+exists")

_OURS: Final = "parley:*"
_BINDINGS: Final = "_kombu.binding*"
_RESULTS: Final = "celery-task-meta-*"
_CELERY_EVENTS: Final = "/0.celeryev/*"
"""Who subscribes to a pattern must be allowed that very pattern; the number is that of the database."""
_REMOTE_CONTROL: Final = "/*celery.pidbox*"
_REPLIES: Final = "*.reply.celery.pidbox*"


@dataclass(frozen=True, slots=True)
class RedisUser:
    """`keys` and `channels` are patterns of Redis; `commands` are rules that begin with none allowed."""

    name: str
    keys: tuple[str, ...]
    channels: tuple[str, ...] = ()
    commands: tuple[str, ...] = _EVERYTHING

    def rules(self) -> tuple[str, ...]:
        """List what `ACL SETUSER` takes after name and password."""
        return (
            *("resetkeys", "resetchannels"),
            *(key if key.startswith("%") else f"~{key}" for key in self.keys),
            *(f"&{pattern}" for pattern in self.channels),
            *self.commands,
        )


def _of(*queues: str) -> tuple[str, ...]:
    """The lists of queues: a priority is a suffix."""
    return tuple(f"{queue}*" for queue in queues)


def _read_only(*queues: str) -> tuple[str, ...]:
    return tuple(f"%R~{name}" for name in _of(*queues))


USERS: Final[tuple[RedisUser, ...]] = (
    # Workers and beat.
    RedisUser(
        "parley-worker",
        (_OURS, _BINDINGS, *_of(*QUEUES), "unacked*", _RESULTS, "celery-taskset-meta-*"),
        (_OURS, _RESULTS, _CELERY_EVENTS, _REMOTE_CONTROL),
    ),
    # The gateway: it wakes workers; what backends submit is not for it to read.
    RedisUser("parley-gateway", (_OURS, _BINDINGS, *_of(TURNS, INTERNAL, URGENT)), (_OURS,)),
    # Backends that use the queue contract: they put in submissions, and read results. They take nothing out.
    RedisUser(
        "parley-sender",
        (_BINDINGS, *_of(SUBMISSIONS), _RESULTS),
        (_RESULTS,),
        (*_CONNECTING, *_LISTENING, *_DECLARING, "+lpush", "+llen", "+get", "+mget", "+del"),
    ),
    # Flower: events of workers and lengths of queues, nothing that is in them.
    RedisUser(
        "parley-flower",
        (_BINDINGS, "celeryev.*", _REPLIES, *_read_only(*QUEUES)),
        (_CELERY_EVENTS, _REMOTE_CONTROL),
        (*_CONNECTING, *_LISTENING, *_DECLARING, *_COUNTING, *_KEEPING_A_BOOK, *_ASKING),
    ),
    # Who decides how many workers there are: KEDA asks by a script, which counts as writing.
    RedisUser(
        "parley-scaler",
        (READY, *_of(*QUEUES)),
        commands=(*_CONNECTING, *_COUNTING, "+eval", "+evalsha", "+script|load"),
    ),
    # Who asks whether the server answers.
    RedisUser("parley-probe", (), commands=("-@all", "+ping", "+select")),
)


def write_acl_file(passwords: Mapping[str, str]) -> str:
    """The text of an ACL file for users by name; passwords stand in it as digests only.

    The default user is switched off.
    """
    return _write(lambda name: f"#{hashlib.sha256(passwords[name].encode()).hexdigest()}")


def write_template() -> str:
    """The same with ``@name@`` for each password in the clear, for scripts that have nothing but a shell."""
    return _write(lambda name: f">@{name}@")


def _write(password: Callable[[str], str]) -> str:
    lines = ["user default off resetkeys resetchannels -@all"]
    lines += [" ".join((f"user {user.name}", "on", password(user.name), *user.rules())) for user in USERS]
    return "\n".join(lines) + "\n"
