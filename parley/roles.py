"""The roles of a running Parley and the command of each: one home for `up`, `serve`, the image and Kubernetes.

What a role needs from its surroundings (stores, secrets) is in its environment, never in its command.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from orchestrator.errors import InvalidInput
from orchestrator.ports.tasks import INTERNAL, SUBMISSIONS, TURNS, URGENT

APPLICATION: Final = "workers.app"  # what Celery's programs load
WATCHING: Final = "workers.flower_app"  # what Flower loads

# Names ``user:password`` for Flower; several are separated by commas.
FLOWER_AUTH: Final = "FLOWER_BASIC_AUTH"

# Small matrices: more threads only get into each other's way (training took 11 s instead of 2).
ONE_THREAD_EACH: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


class Role(StrEnum):
    """The roles of processes."""

    GATEWAY = "gateway"
    TURNS = "turns"
    SUBMISSIONS = "submissions"
    INTERNAL = "internal"
    BEAT = "beat"
    FLOWER = "flower"


QUEUES: Final[Mapping[Role, tuple[str, ...]]] = {
    Role.TURNS: (TURNS,),
    Role.SUBMISSIONS: (SUBMISSIONS,),
    Role.INTERNAL: (INTERNAL, URGENT),
}
# Tasks that may wait side by side; turns themselves run on one event loop per process.
THREADS: Final[Mapping[Role, int]] = {Role.TURNS: 64, Role.SUBMISSIONS: 16, Role.INTERNAL: 16}
PORTS: Final[Mapping[Role, int]] = {Role.GATEWAY: 8600, Role.FLOWER: 5555}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """A role's location and account.

    Args:
        name: name among the workers; ``%h`` stands for the host.
        threads: threads of a worker; None for the default.
        in_flower: whether a worker sends events to Flower.
    """

    host: str = "127.0.0.1"
    port: int = 0
    name: str | None = None
    threads: int | None = None
    in_flower: bool = True


def command_of(role: Role, seat: Seat) -> tuple[str, ...]:
    """Return the interpreter's arguments that run this role in the foreground."""
    celery = ("-m", "workers", "-A", WATCHING if role is Role.FLOWER else APPLICATION)
    match role:
        case Role.GATEWAY:
            return ("-m", "gateway", "--host", seat.host, "--port", str(seat.port))
        case Role.TURNS | Role.SUBMISSIONS | Role.INTERNAL:
            threads, name = str(seat.threads or THREADS[role]), seat.name or f"{role}@%h"
            return (
                *(*celery, "worker", "-P", "threads", "-c", threads, "-Q", ",".join(QUEUES[role])),
                *("-n", name, "--without-gossip", "--without-mingle", "-l", "INFO"),
                *(("-E",) if seat.in_flower else ()),
            )
        case Role.BEAT:
            return (*celery, "beat", "--pidfile=", "-l", "INFO")
        case Role.FLOWER:
            # Workers send events by themselves; Flower need not ask for them.
            options = (f"--address={seat.host}", f"--port={seat.port}", "--enable_events=false")
            return (*celery, "flower", *options)


def check_flower(seat: Seat, environment: Mapping[str, str]) -> None:
    """Flower shows who talks to whom. Raises InvalidInput where others could reach it without a password."""
    if seat.host in LOOPBACK:
        return
    if any(":" not in entry for entry in environment.get(FLOWER_AUTH, "").split(",")):
        raise InvalidInput(
            f"Flower would be open to everybody on {seat.host}: set {FLOWER_AUTH} to user:password "
            f"(or {FLOWER_AUTH}_FILE to a file with it), or leave it on 127.0.0.1.",
            field="host",
        )
