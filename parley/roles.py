"""The roles of a running Parley and the command of each: one home for `up`, `serve`, the image and Kubernetes.

What a role needs from its surroundings (stores, secrets) is in its environment, never in its command.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from orchestrator.errors import InvalidInput
from orchestrator.ports.tasks import INTERNAL, SUBMISSIONS, TURNS, URGENT

APPLICATION: Final = "workers.app"
"""What Celery's programs are told to load."""
WATCHING: Final = "workers.flower_app"
"""What Flower is told to load."""

FLOWER_AUTH: Final = "FLOWER_BASIC_AUTH"
"""Names ``user:password`` for Flower; several are separated by commas."""

ONE_THREAD_EACH: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Small matrices: more threads only get into each other's way (training took 11 s instead of 2)."""

_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


class Role(StrEnum):
    """What a process can be."""

    GATEWAY = "gateway"
    TURNS = "turns"
    INTERNAL = "internal"
    BEAT = "beat"
    FLOWER = "flower"


QUEUES: Final[Mapping[Role, tuple[str, ...]]] = {
    Role.TURNS: (TURNS, SUBMISSIONS),
    Role.INTERNAL: (INTERNAL, URGENT),
}
THREADS: Final[Mapping[Role, int]] = {Role.TURNS: 64, Role.INTERNAL: 16}
"""Tasks that may wait side by side; turns themselves run on one event loop per process."""
PORTS: Final[Mapping[Role, int]] = {Role.GATEWAY: 8600, Role.FLOWER: 5555}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """Where and as whom a role runs.

    Args:
        name: of a worker among the workers; ``%h`` stands for the host.
        threads: of a worker; None for the usual number.
        shown: whether a worker tells Flower what it does.
    """

    host: str = "127.0.0.1"
    port: int = 0
    name: str | None = None
    threads: int | None = None
    shown: bool = True


def command_of(role: Role, seat: Seat) -> tuple[str, ...]:
    """The arguments for the Python interpreter that run this role in the foreground."""
    match role:
        case Role.GATEWAY:
            return ("-m", "gateway", "--host", seat.host, "--port", str(seat.port))
        case Role.TURNS | Role.INTERNAL:
            return _worker(role, seat)
        case Role.BEAT:
            return (*_celery("beat"), "--pidfile=", "-l", "INFO")
        case Role.FLOWER:
            # Workers tell by themselves what they do; Flower need not ask them to.
            options = (f"--address={seat.host}", f"--port={seat.port}", "--enable_events=false")
            return (*_celery("flower", WATCHING), *options)


def check_flower(seat: Seat, environment: Mapping[str, str]) -> None:
    """Flower shows who talks to whom. Raises InvalidInput where others could reach it without a password."""
    if seat.host in _LOOPBACK:
        return
    if any(":" not in entry for entry in environment.get(FLOWER_AUTH, "").split(",")):
        raise InvalidInput(
            f"Flower would be open to everybody on {seat.host}: set {FLOWER_AUTH} to user:password "
            f"(or {FLOWER_AUTH}_FILE to a file with it), or leave it on 127.0.0.1.",
            field="host",
        )


def _worker(role: Role, seat: Seat) -> tuple[str, ...]:
    threads = seat.threads or THREADS[role]
    return (
        *(*_celery("worker"), "-P", "threads", "-c", str(threads), "-Q", ",".join(QUEUES[role])),
        *("-n", seat.name or f"{role}@%h", "--without-gossip", "--without-mingle", "-l", "INFO"),
        *(("-E",) if seat.shown else ()),
    )


def _celery(program: str, application: str = APPLICATION) -> tuple[str, ...]:
    return ("-m", "celery", "-A", application, program)
