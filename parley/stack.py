"""The roles of a running Parley: what is started, in which order, with which command.

Order matters twice: each group is started once the one before is ready, and stopping goes backwards.
`parley.supervision` keeps the roles alive; `parley.processes` knows how one child is handled.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path

import httpx
import orjson

from orchestrator.settings import read_settings
from parley.embedded import Stores, open_database, open_redis
from parley.embedded.lock import hold
from parley.embedded.ports import free_port
from parley.processes import Child, Program, end_leftovers, log_says
from parley.roles import FLOWER_AUTH, ONE_THREAD_EACH, Role, Seat, command_of

_BRIEF_GRACE_S = 10.0
_PRIVATE_SHUTDOWN_S = 5.0
_PROBE_TIMEOUT_S = 2.0
TRAINED_FOLDER = "PARLEY_TRAINED_FOLDER"
_MIGRATION = "orchestrator.adapters.postgres.migrate"


@dataclass(frozen=True, slots=True, kw_only=True)
class StackPlan:
    """What to run.

    Args:
        domain: name of a shipped domain, or the absolute path of a folder.
        private: a throw-away run for one conversation: no schedule, no Flower, no safety against power loss.
        database_url: replaces the embedded PostgreSQL.
        redis_url: replaces the embedded Redis.
        trained: where trained models are kept, when the environment does not say; None: below `data_dir`.
    """

    data_dir: Path
    domain: str
    host: str
    port: int
    turn_workers: int = 1
    private: bool = False
    database_url: str | None = None
    redis_url: str | None = None
    trained: Path | None = None


@dataclass(frozen=True, slots=True)
class Flower:
    """Where Flower answers, and with which basic auth."""

    url: str
    user: str
    password: str


@dataclass(frozen=True, slots=True)
class RunningStack:
    """A stack that answers."""

    url: str
    stores: Stores
    flower: Flower | None
    children: tuple[Child, ...] = field(repr=False)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Where Prometheus finds the gateway's and each worker's metrics."""
        told = [child.program.metrics for child in self.children]
        return (f"{self.url}/metrics", *(address for address in told if address is not None))


@contextmanager
def run_stack(plan: StackPlan, say: Callable[[str], None]) -> Iterator[RunningStack]:
    """Start everything, give the addresses, and stop all in order when the block ends.

    Raises:
        FolderInUse: another run holds the data folder.
        Unavailable: a program is missing, ended while starting, or did not become ready.
    """
    with hold(plan.data_dir), ExitStack() as stack:
        for name in end_leftovers(plan.data_dir / "run"):
            say(f"Ended {name}, left over from a run that was killed.")
        # Half a second of imports, done while the stores start.
        migration = stack.enter_context(ThreadPoolExecutor(1)).submit(import_module, _MIGRATION)
        stores, children = _open_stores(plan, stack, say)
        say("Bringing the database up to date.")
        migration.result().migrate(stores.database_url)
        flower = None if plan.private else _plan_flower()
        children += _start_roles(plan, stores, flower, stack, say)
        url = address_of(plan.host, plan.port)
        yield RunningStack(url, stores, flower, tuple(children))


def trained_folder(data_dir: Path) -> Path:
    """Where the processes of a data folder keep what they have trained."""
    return data_dir / "trained"


def address_of(host: str, port: int) -> str:
    """The URL under which this machine reaches a server that listens on `host`."""
    reachable = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)  # noqa: S104
    return f"http://{reachable}:{port}"


def list_programs(plan: StackPlan, stores: Stores, flower: Flower | None) -> list[Program]:
    """All roles but the stores, in the order in which they are started."""
    environment = {
        "DATABASE_URL": stores.database_url,
        "REDIS_URL": stores.redis_url,
        "PARLEY_DOMAIN": plan.domain,
        "PARLEY_HOST": plan.host,
        "PARLEY_PORT": str(plan.port),
        "PYTHONUNBUFFERED": "1",
        TRAINED_FOLDER: os.environ.get(TRAINED_FOLDER) or str(plan.trained or trained_folder(plan.data_dir)),
        **{name: os.environ.get(name, value) for name, value in ONE_THREAD_EACH.items()},
    }
    # The rest of the settings is read from the environment.
    settings = read_settings(DATABASE_URL=stores.database_url, REDIS_URL=stores.redis_url)
    shutdown_s = settings.shutdown_grace_s
    if plan.private:
        shutdown_s = _PRIVATE_SHUTDOWN_S
        environment["PARLEY_SHUTDOWN_GRACE_S"] = str(shutdown_s)
        environment["PARLEY_AUTH"] = "open"  # one conversation, on loopback
    role = _Roles(plan, environment, worker_grace_s=shutdown_s + _BRIEF_GRACE_S)
    turn_workers = [role.worker(f"turns-{number}", Role.TURNS) for number in range(1, plan.turn_workers + 1)]
    programs = [role.gateway(flower), *turn_workers, role.worker("internal", Role.INTERNAL)]
    if not plan.private:
        programs.append(role.beat())
    if flower is not None:
        programs.append(role.flower(flower))
    return programs


@dataclass(frozen=True, slots=True)
class _Roles:
    """Makes the program of each role."""

    plan: StackPlan
    environment: Mapping[str, str]
    worker_grace_s: float
    """Longer than a worker gives the turns it has begun."""

    def gateway(self, flower: Flower | None) -> Program:
        plan = self.plan
        ready_url = f"{address_of(plan.host, plan.port)}/health/ready"
        seat = Seat(host=plan.host, port=plan.port)
        link = {} if flower is None else {"PARLEY_FLOWER_URL": flower.url}
        return self._program(
            "gateway", Role.GATEWAY, seat, lambda _: _answers(ready_url), _BRIEF_GRACE_S, link
        )

    def worker(self, name: str, role: Role) -> Program:
        seat = Seat(name=f"{name}@parley", shown=not self.plan.private)
        # The threads pool knows no other way to stop than SIGTERM: a second signal runs tasks twice.
        program = self._program(name, role, seat, log_says("ready."), self.worker_grace_s)
        if self.plan.private:
            return program
        port = free_port()
        told_at = {"PARLEY_METRICS_HOST": "127.0.0.1", "PARLEY_METRICS_PORT": str(port)}
        return replace(
            program,
            environment={**program.environment, **told_at},
            metrics=f"http://127.0.0.1:{port}/metrics",
        )

    def beat(self) -> Program:
        return self._program("beat", Role.BEAT, Seat(), log_says("beat: Starting"), _BRIEF_GRACE_S)

    def flower(self, flower: Flower) -> Program:
        seat = Seat(port=int(flower.url.rpartition(":")[2]))
        secret = {FLOWER_AUTH: f"{flower.user}:{flower.password}"}
        return self._program(
            "flower",
            Role.FLOWER,
            seat,
            lambda _: _answers(f"{flower.url}/healthcheck"),
            _BRIEF_GRACE_S,
            secret,
        )

    def _program(
        self,
        name: str,
        role: Role,
        seat: Seat,
        ready: Callable[[str], bool],
        grace_s: float,
        additions: Mapping[str, str] | None = None,
    ) -> Program:
        return Program(
            name=name,
            command=(sys.executable, *command_of(role, seat)),
            log=self.plan.data_dir / "logs" / f"{name}.log",
            ready=ready,
            environment={**self.environment, **(additions or {})},
            grace_s=grace_s,
        )


def stop_together(children: list[Child]) -> None:
    """The gateway first, so that nothing new comes in; then all others at once."""
    doors = [child for child in children if child.program.name == "gateway"]
    others = [child for child in children if child.program.name != "gateway"]
    for group in (doors, others):
        for child in group:
            child.ask_to_stop()
        for child in group:
            child.stop()


def _open_stores(plan: StackPlan, stack: ExitStack, say: Callable[[str], None]) -> tuple[Stores, list[Child]]:
    children: list[Child] = []
    if not (plan.redis_url and plan.database_url):
        say("Starting the stores.")
    redis_url, database_url = plan.redis_url, plan.database_url
    if redis_url is None:
        redis = stack.enter_context(open_redis(plan.data_dir, durable=not plan.private))
        redis_url, children = redis.url, [redis.child]
    if database_url is None:
        database = stack.enter_context(open_database(plan.data_dir, durable=not plan.private))
        database_url, children = database.url, [*children, database.child]
    return Stores(database_url, redis_url), children


def _start_roles(
    plan: StackPlan, stores: Stores, flower: Flower | None, stack: ExitStack, say: Callable[[str], None]
) -> list[Child]:
    children = [Child(program, plan.data_dir / "run") for program in list_programs(plan, stores, flower)]
    say(f"Starting {', '.join(child.program.name for child in children)}.")
    stack.callback(stop_together, children)
    for child in children:
        child.start()
    for child in children:
        child.await_ready()
    return children


def _plan_flower() -> Flower:
    return Flower(f"http://127.0.0.1:{free_port()}", "parley", secrets.token_urlsafe(12))


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=_PROBE_TIMEOUT_S).is_success
    except httpx.HTTPError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class UpNote:
    """What a running `parley up` writes down for other commands: `<data-dir>/up.json`."""

    url: str
    pid: int
    domain: str
    metrics: tuple[str, ...] = ()

    @staticmethod
    def path(data_dir: Path) -> Path:
        return data_dir / "up.json"

    def write(self, data_dir: Path) -> None:
        path = self.path(data_dir)
        path.unlink(missing_ok=True)
        path.touch(mode=0o600)
        path.write_bytes(orjson.dumps(self))

    @classmethod
    def read(cls, data_dir: Path) -> UpNote | None:
        try:
            noted = orjson.loads(cls.path(data_dir).read_bytes())
            return cls(**{**noted, "metrics": tuple(noted["metrics"])})
        except (FileNotFoundError, orjson.JSONDecodeError, KeyError, TypeError):
            return None  # nothing runs here, or it is just being written
