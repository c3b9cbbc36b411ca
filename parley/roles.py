"""The roles of Parley's processes and their command lines, for `up`, `serve`, the container image and Kubernetes.

Command lines never contain store URLs or secrets. Processes read these from the environment.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from orchestrator.errors import InvalidInput
from orchestrator.ports.tasks import INTERNAL, SUBMISSIONS, TURNS, URGENT

APPLICATION: Final = "workers.app"  # the Celery application
WATCHING: Final = "workers.flower_app"  # the Flower application

# Variable with comma-separated ``user:password`` pairs for Flower.
FLOWER_AUTH: Final = "FLOWER_BASIC_AUTH"

# The local classifier's matrices are small, so more threads slow down training, from 2 s to 11 s.
ONE_THREAD_EACH: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


class Role(StrEnum):
    GATEWAY = "gateway"
    WORKER = "worker"
    """All queues and the schedules in one process, for a single machine."""
    TURNS = "turns"
    SUBMISSIONS = "submissions"
    INTERNAL = "internal"
    BEAT = "beat"
    FLOWER = "flower"


QUEUES: Final[Mapping[Role, tuple[str, ...]]] = {
    Role.WORKER: (TURNS, SUBMISSIONS, INTERNAL, URGENT),
    Role.TURNS: (TURNS,),
    Role.SUBMISSIONS: (SUBMISSIONS,),
    Role.INTERNAL: (INTERNAL, URGENT),
}
# Number of worker threads, which limits the tasks in progress. All turns of a process run on one event loop.
THREADS: Final[Mapping[Role, int]] = {
    Role.WORKER: 96,
    Role.TURNS: 64,
    Role.SUBMISSIONS: 16,
    Role.INTERNAL: 16,
}
PORTS: Final[Mapping[Role, int]] = {Role.GATEWAY: 8600, Role.FLOWER: 5555}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """The listening address of a gateway or Flower, or the options of a worker.

    Args:
        port: port that the gateway or Flower listens on.
        name: Celery node name; ``%h`` stands for the host. Default: the role's name and host.
        threads: number of worker threads. Default: the number in THREADS.
        in_flower: True if the worker sends the events that Flower shows.
        schedules: True if a worker for all queues also runs the scheduler.
    """

    host: str = "127.0.0.1"
    port: int = 0
    name: str | None = None
    threads: int | None = None
    in_flower: bool = True
    schedules: bool = True


def command_of(role: Role, seat: Seat) -> tuple[str, ...]:
    """Return the Python arguments that run the role in the foreground."""
    celery = ("-m", "workers", "-A", WATCHING if role is Role.FLOWER else APPLICATION)
    match role:
        case Role.GATEWAY:
            return ("-m", "gateway", "--host", seat.host, "--port", str(seat.port))
        case Role.WORKER | Role.TURNS | Role.SUBMISSIONS | Role.INTERNAL:
            threads, name = str(seat.threads or THREADS[role]), seat.name or f"{role}@%h"
            return (
                *(*celery, "worker", "-P", "threads", "-c", threads, "-Q", ",".join(QUEUES[role])),
                *("-n", name, "--without-gossip", "--without-mingle", "-l", "INFO"),
                *(("-E",) if seat.in_flower else ()),
                *(("--schedules",) if role is Role.WORKER and seat.schedules else ()),
            )
        case Role.BEAT:
            return (*celery, "beat", "--pidfile=", "-l", "INFO")
        case Role.FLOWER:
            # Flower doesn't need to enable events, because the workers always send them.
            options = (f"--address={seat.host}", f"--port={seat.port}", "--enable_events=false")
            return (*celery, "flower", *options)


def check_flower(seat: Seat, environment: Mapping[str, str]) -> None:
    """Raise InvalidInput if other machines could reach Flower without a password. Flower shows user activity."""
    if seat.host in LOOPBACK:
        return
    if any(":" not in entry for entry in environment.get(FLOWER_AUTH, "").split(",")):
        raise InvalidInput(
            f"Flower would be open to everyone on {seat.host}: set {FLOWER_AUTH} to user:password "
            f"(or {FLOWER_AUTH}_FILE to a file that contains it), or listen on 127.0.0.1.",
            field="host",
        )
