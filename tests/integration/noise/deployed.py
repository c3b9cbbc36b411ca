"""A whole deployment with planted secrets: stores with separate accounts, and all roles at DEBUG."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from orchestrator.adapters.postgres.migrate import migrate
from orchestrator.adapters.postgres.roles import GATEWAY, RUNTIME, make_login, make_roles
from parley.embedded import open_database
from parley.embedded.ports import free_port
from tests.integration.chaos.fleet import ROOT, fleet
from tests.integration.deploy.fixtures.deployment import make_secrets
from tests.integration.deploy.fixtures.servers import deployed_redis
from tests.integration.noise.canaries import CONTENTS, SECRETS
from tests.integration.noise.outside import Outside, outside
from tests.integration.workers.test_workers_flower_pages import flower
from tests.processes.forked import run
from tests.processes.gateway import gateway

PARCELS = ROOT / "tests" / "domains" / "parcels"
FILES = ("domain.yaml", "ontology.yaml", "services.py", "tools.yaml")


@dataclass(frozen=True)
class Place:
    """The stores, with the URLs of an administrator and of each account. `folder`: files left behind."""

    folder: Path
    database_url: str
    logins: Mapping[str, str]
    redis_urls: Mapping[str, str]
    outside: Outside
    domain: Path

    @property
    def passwords(self) -> dict[str, str]:
        """Return the generated passwords by place."""
        kept = {f"redis {name}": _password(url) for name, url in self.redis_urls.items()}
        return {**kept, "administrator": _password(self.database_url)}

    def environment(self, login: str, account: str, **more: str) -> dict[str, str]:
        """Return the environment of a process with these rights."""
        return {
            "DATABASE_URL": self.logins[login],
            "REDIS_URL": self.redis_urls[account],
            "PARLEY_DOMAIN": str(self.domain),
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.outside.url,
            "OTEL_EXPORTER_OTLP_HEADERS": f"x-collector-key={SECRETS['collector']}",
            "OTEL_BSP_SCHEDULE_DELAY": "200",
            **more,
        }

    @contextmanager
    def broken_database(self) -> Iterator[None]:
        """Refuse new database connections and end existing connections."""
        names = [str(conninfo_to_dict(url)["user"]) for url in self.logins.values()]
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            for name in names:
                connection.execute(sql.SQL("ALTER ROLE {} NOLOGIN").format(sql.Identifier(name)))
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = ANY(%s)", (names,)
            )
            yield
            for name in names:
                connection.execute(sql.SQL("ALTER ROLE {} LOGIN").format(sql.Identifier(name)))


@contextmanager
def place(folder: Path) -> Iterator[Place]:
    """Yield separate stores, so that their logs and files belong to this run only."""
    with ExitStack() as stack:
        there = stack.enter_context(outside(CONTENTS["result"]))
        (folder / "stores").mkdir()
        database = stack.enter_context(open_database(folder / "stores", durable=False))
        migrate(database.url)
        make_roles(database.url)
        address = database.url.rpartition("@")[2]
        logins = {}
        for name, role in (("runtime", RUNTIME), ("gateway", GATEWAY)):
            word = quote(SECRETS[f"{name} database"], safe="")
            logins[name] = f"postgresql://noisy_{name}:{word}@{address}"
            make_login(database.url, logins[name], role)
        redis_urls = stack.enter_context(deployed_redis(folder, make_secrets(folder)))
        yield Place(folder, database.url, logins, redis_urls, there, _copy_domain(folder, there.url))


@contextmanager
def roles(there: Place, model_url: str) -> Iterator[dict[str, str]]:
    """Start all processes, and yield their addresses: `gateway`, `flower`, `turns` and `internal` (metrics)."""
    ports = {"turns": free_port(), "internal": free_port()}
    shared = {
        "OPENAI_BASE_URL": model_url,
        "OPENAI_API_KEY": SECRETS["model"],
        "WAREHOUSE_LOGIN": SECRETS["tool"],
        "WAREHOUSE_STORE": SECRETS["tool store"],
        "WAREHOUSE_RESULT": CONTENTS["result"],
        "PARLEY_WEBHOOK_NETWORKS": '["127.0.0.0/8"]',
        "PARLEY_LEASE_TTL_S": "3",
        "PARLEY_MODEL_FAILURES": "1000",
    }
    callers = {
        "PARLEY_AUTH": "required",
        "PARLEY_ROW_SECURITY": "true",
        "PARLEY_JWT_KEY": SECRETS["signing"],
        "PARLEY_JWT_AUDIENCE": "parley",
        "PARLEY_JWT_ISSUER": "https://id.example",
        "OPENAI_BASE_URL": model_url,
        "OPENAI_API_KEY": SECRETS["model"],
    }
    watching = {"FLOWER_BASIC_AUTH": f"flower:{SECRETS['flower']}", "PARLEY_HOST": "0.0.0.0"}
    options = ("-E", "-l", "DEBUG")
    with ExitStack() as stack:
        for name, queues in (("turns", "turns,submissions"), ("internal", "internal,urgent")):
            settings = there.environment("runtime", "worker", **shared, PARLEY_METRICS_PORT=str(ports[name]))
            logs = there.folder / "logs" / name
            logs.mkdir(parents=True)
            url, redis_url = there.logins["runtime"], there.redis_urls["worker"]
            crew = stack.enter_context(fleet(url, redis_url, logs, settings))
            crew.start(1, application="workers.app", queues=queues, options=options)
        door = there.environment("gateway", "gateway", **callers)
        page = there.environment("runtime", "flower", **watching)
        logs = there.folder / "logs"
        yield {
            "gateway": stack.enter_context(gateway(door, logs / "gateway.log")),
            "flower": stack.enter_context(flower(page, logs / "flower.log")),
            **{name: f"http://127.0.0.1:{port}" for name, port in ports.items()},
        }


def run_command(environment: Mapping[str, str], *words: str) -> bytes:
    """Return the output of a command, regardless of its exit code."""
    done = run(words, environment={**os.environ, **environment})
    return (done.stdout + done.stderr).encode()


def _copy_domain(folder: Path, url: str) -> Path:
    copied = folder / "domain" / "parcels"
    copied.mkdir(parents=True)
    for name in FILES:
        (copied / name).write_text((PARCELS / name).read_text().replace("http://warehouse", url))
    return copied


def _password(url: str) -> str:
    word = urlsplit(url).password
    assert word
    return word
