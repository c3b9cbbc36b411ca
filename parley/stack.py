"""Start and stop the processes of a Parley stack: the stores and the roles.

The stores start first, then the roles. They stop in reverse order. `parley.supervision` restarts processes, and
`parley.processes` handles a single process.
"""

from __future__ import annotations

import gc
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from orchestrator.adapters.models.trained_files import SUFFIX, TrainedFiles
from orchestrator.errors import Unavailable
from orchestrator.settings import read_settings
from orchestrator.settings.environment import read_environment
from parley.data_folder import EVALUATIONS, hold, trained_folder
from parley.embedded import Stores, open_database, open_redis
from parley.embedded.ports import free_port
from parley.probe import ask_server
from parley.processes import Child, Program, end_leftovers, log_says
from parley.roles import FLOWER_AUTH, ONE_THREAD_EACH, Role, Seat, command_of

_BRIEF_GRACE_S = 10.0
_PRIVATE_SHUTDOWN_S = 5.0
TRAINED_FOLDER = "PARLEY_TRAINED_FOLDER"
PREPARED = Path(sys.prefix, "share", "parley", "trained")
"""Folder with the models that `make` trained for this installation. New data folders receive copies."""
_MIGRATION = "orchestrator.adapters.postgres.migrate"
IMPORTED = (
    *("celery.apps.worker", "celery.backends.redis", "celery.bin.worker"),
    *("celery.concurrency.thread", "celery.worker.autoscale", "celery.worker.consumer"),
    *("kombu.transport.redis", "orchestrator.agent.build", "orchestrator.bootstrap"),
    *("sqlalchemy.dialects.postgresql.psycopg", "workers.app"),
)
"""Modules of the worker, most of which the other roles need, too. Imported once before the roles are forked.

The gateway and Flower import the rest of theirs while the worker starts.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackPlan:
    """The configuration of a stack.

    Args:
        domain: name of a demo domain, or the absolute path of a domain folder.
        host: address that the gateway listens on.
        port: port that the gateway listens on.
        turn_workers: number of worker processes that run turns.
        private: True to serve a single conversation, without schedules and Flower.
        lasting: True to store data durably, so that it survives a power failure.
        database_url: URL of a server to use instead of the embedded PostgreSQL.
        redis_url: URL of a server to use instead of the embedded Redis.
        trained: folder for trained models, unless PARLEY_TRAINED_FOLDER is set. Default: a folder in `data_dir`.
    """

    data_dir: Path
    domain: str
    host: str
    port: int
    turn_workers: int = 1
    private: bool = False
    lasting: bool = True
    database_url: str | None = None
    redis_url: str | None = None
    trained: Path | None = None


@dataclass(frozen=True, slots=True)
class Flower:
    port: int
    user: str
    password: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@dataclass(frozen=True, slots=True)
class RunningStack:
    """A stack whose processes are all ready."""

    url: str
    stores: Stores
    flower: Flower | None
    children: tuple[Child, ...] = field(repr=False)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics URLs of the gateway and all workers."""
        served = [child.program.metrics for child in self.children]
        return (f"{self.url}/metrics", *(address for address in served if address is not None))


@contextmanager
def run_stack(plan: StackPlan, say: Callable[[str], None]) -> Iterator[RunningStack]:
    """Start all processes, yield when they are ready, and stop them in order when the block ends.

    Raises:
        FolderInUse: another run holds the data folder.
        Forbidden: other accounts can access the data folder.
        Unavailable: a program is missing, exited during startup, or did not become ready.
    """
    with hold(plan.data_dir), ExitStack() as stack:
        for name in end_leftovers(plan.data_dir / "run"):
            say(f"Stopped leftover process {name} from an earlier run.")
        take_prepared(_kept_in(plan))
        # Import while the stores start. The thread must end before the roles are forked.
        with ThreadPoolExecutor(1) as importing:
            migration = importing.submit(import_module, _MIGRATION)
            imported = importing.submit(_import_roles)
            stores, children = _open_stores(plan, stack, say)
            say("Migrating the database.")
            migration.result().migrate(stores.database_url)
            imported.result()
        flower = None if plan.private else Flower(free_port(), "parley", secrets.token_urlsafe(12))
        children += _start_roles(plan, stores, flower, stack, say)
        yield RunningStack(address_of(plan.host, plan.port), stores, flower, tuple(children))


def _kept_in(plan: StackPlan) -> Path:
    """Return the folder for trained models: from the environment, from the plan, or in the data folder."""
    return Path(os.environ.get(TRAINED_FOLDER) or plan.trained or trained_folder(plan.data_dir))


def take_prepared(folder: Path, prepared: Path = PREPARED) -> None:
    """Copy the models in `prepared` to the folder, except those that the folder already has."""
    for path in prepared.glob(f"*{SUFFIX}"):
        if not (folder / path.name).exists():
            TrainedFiles(folder).put(path.stem, path.read_bytes())


def _import_roles() -> None:
    """Import the roles' modules, so that forks share them."""
    # Imported objects stay alive, and scanning them for garbage would take a tenth of the startup time.
    gc.set_threshold(50_000)
    for name, value in ONE_THREAD_EACH.items():
        os.environ.setdefault(name, value)
    for module in IMPORTED:
        import_module(module)


def note_models(say: Callable[[str], None]) -> None:
    # Slow to import: loads the settings of all processes.
    from parley.diagnosis.surroundings import examine_models  # noqa: PLC0415

    for finding in examine_models(read_environment()):
        say(
            ". ".join(
                part for part in (f"{finding.name.capitalize()}: {finding.message}", finding.remedy) if part
            )
        )


def address_of(host: str, port: int) -> str:
    """Return the URL of a server on this machine that listens on `host`."""
    reachable = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)  # noqa: S104
    return f"http://{reachable}:{port}"


def list_programs(plan: StackPlan, stores: Stores, flower: Flower | None) -> list[Program]:
    """Return the programs for all roles, in start order."""
    # The other settings come from the environment.
    settings = read_settings(DATABASE_URL=stores.database_url, REDIS_URL=stores.redis_url)
    shutdown_s = _PRIVATE_SHUTDOWN_S if plan.private else settings.shutdown_grace_s
    common = _environment(plan, stores)

    def program(
        name: str,
        role: Role,
        seat: Seat,
        ready: Callable[[str], bool],
        additions: dict[str, str],
        grace_s: float = _BRIEF_GRACE_S,
        metrics: str | None = None,
    ) -> Program:
        return Program(
            name=name,
            command=(sys.executable, *command_of(role, seat)),
            imported=True,
            log=plan.data_dir / "logs" / f"{name}.log",
            ready=ready,
            environment={**common, **additions},
            grace_s=grace_s,
            metrics=metrics,
        )

    def worker(name: str, role: Role) -> Program:
        is_shared = not plan.private
        seat = Seat(name=f"{name}@parley", in_flower=is_shared, schedules=is_shared)
        ready = log_says("ready.")
        # Send a worker only one SIGTERM: a second one makes the threads pool run tasks twice. The grace
        # period must be longer than the time that a worker gives its running turns.
        grace_s = shutdown_s + _BRIEF_GRACE_S
        if plan.private:
            return program(name, role, seat, ready, {}, grace_s)
        host, port = "127.0.0.1", free_port()
        served = {"PARLEY_METRICS_HOST": host, "PARLEY_METRICS_PORT": str(port)}
        return program(name, role, seat, ready, served, grace_s, f"http://{host}:{port}/metrics")

    link = {} if flower is None else {"PARLEY_FLOWER_URL": flower.url}
    seat = Seat(host=plan.host, port=plan.port)
    ready = answers(f"{address_of(plan.host, plan.port)}/health/ready")
    programs = [program("gateway", Role.GATEWAY, seat, ready, link)]
    programs.append(worker("worker", Role.WORKER))
    programs += [worker(f"turns-{number}", Role.TURNS) for number in range(2, plan.turn_workers + 1)]
    if flower is not None:
        secret = {FLOWER_AUTH: f"{flower.user}:{flower.password}"}
        ready = answers(f"{flower.url}/healthcheck")
        programs.append(program("flower", Role.FLOWER, Seat(port=flower.port), ready, secret))
    return programs


def _environment(plan: StackPlan, stores: Stores) -> dict[str, str]:
    """Return the environment variables that all roles get in addition to this process's variables."""
    alone = {"PARLEY_SHUTDOWN_GRACE_S": str(_PRIVATE_SHUTDOWN_S), "PARLEY_AUTH": "open"}
    return {
        "DATABASE_URL": stores.database_url,
        "REDIS_URL": stores.redis_url,
        "PARLEY_DOMAIN": plan.domain,
        "PARLEY_HOST": plan.host,
        "PARLEY_PORT": str(plan.port),
        "PARLEY_PUBLIC_URL": os.environ.get("PARLEY_PUBLIC_URL") or address_of(plan.host, plan.port),
        "PARLEY_OWNER_ONLY": os.environ.get("PARLEY_OWNER_ONLY", "true"),
        "PARLEY_EVALUATIONS_FOLDER": os.environ.get("PARLEY_EVALUATIONS_FOLDER")
        or str(plan.data_dir / EVALUATIONS),
        "PARLEY_KEEP_PROMPTS": os.environ.get("PARLEY_KEEP_PROMPTS", "true"),
        "PARLEY_DEVELOPMENT": os.environ.get("PARLEY_DEVELOPMENT", "true"),
        "PYTHONUNBUFFERED": "1",
        TRAINED_FOLDER: str(_kept_in(plan)),
        **{name: os.environ.get(name, value) for name, value in ONE_THREAD_EACH.items()},
        **(alone if plan.private else {}),  # a single conversation, on loopback
    }


def stop_together(children: list[Child]) -> None:
    """Stop the gateway first, so that no new turns arrive, then all other processes together."""
    gateways = [child for child in children if child.program.name == "gateway"]
    others = [child for child in children if child.program.name != "gateway"]
    for group in (gateways, others):
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
        redis = stack.enter_context(open_redis(plan.data_dir, durable=plan.lasting))
        redis_url, children = redis.url, [redis.child]
    if database_url is None:
        database = stack.enter_context(open_database(plan.data_dir, durable=plan.lasting))
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


def answers(url: str) -> Callable[[str], bool]:
    """Return a readiness check that requests the URL."""

    def answers(_log: str) -> bool:
        try:
            ask_server(url)
        except Unavailable:
            return False
        return True

    return answers
