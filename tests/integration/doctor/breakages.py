"""Faults of a deployment on real stores for the doctor to find. Each is undone afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from uuid import uuid4

import psycopg
import redis
from psycopg.conninfo import conninfo_to_dict

from orchestrator.adapters.postgres.migrate import HEAD
from orchestrator.adapters.redis.worker_registry import PROCESSES
from tests.processes.http import answering

NOBODY = "127.0.0.1:1"
ELSEWHERE = "127.0.0.2"
"""An address that is not loopback."""


@dataclass
class Deployment:
    """A deployment. `environment`: the doctor's variables. `owner_url`: the database with all rights."""

    environment: dict[str, str]
    owner_url: str

    @property
    def user(self) -> str:
        return str(conninfo_to_dict(self.environment["DATABASE_URL"])["user"])

    def sql(self, text: str) -> None:
        with psycopg.connect(self.owner_url, autocommit=True) as connection:
            connection.execute(text)

    def redis(self) -> redis.Redis:
        return redis.Redis.from_url(self.environment["REDIS_URL"])

    def log_in_as(self, user: str, password: str) -> None:
        address = self.owner_url.rpartition("@")[2]
        self.environment["DATABASE_URL"] = f"postgresql://{user}:{password}@{address}"


Break = Callable[[Deployment], AbstractContextManager[None]]


def told(**variables: str) -> Break:
    """Break by other variables."""

    @contextmanager
    def broken(deployment: Deployment) -> Iterator[None]:
        deployment.environment.update(variables)
        yield

    return broken


def stated(before: str, after: str) -> Break:
    """Break by a SQL statement, and undo it by another. ``{user}``: the login."""

    @contextmanager
    def broken(deployment: Deployment) -> Iterator[None]:
        deployment.sql(before.format(user=deployment.user))
        try:
            yield
        finally:
            deployment.sql(after.format(user=deployment.user))

    return broken


def configured_redis(name: str, value: str) -> Break:
    @contextmanager
    def broken(deployment: Deployment) -> Iterator[None]:
        with deployment.redis() as client:
            before = client.config_get(name)[name]
            client.config_set(name, value)
            try:
                yield
            finally:
                client.config_set(name, before)

    return broken


@contextmanager
def full_redis(deployment: Deployment) -> Iterator[None]:
    with deployment.redis() as client:
        bound = int(client.info("memory")["used_memory"] * 1.05)
        with configured_redis("maxmemory", str(bound))(deployment):
            yield


@contextmanager
def replica_redis(deployment: Deployment) -> Iterator[None]:
    with deployment.redis() as client:
        client.replicaof("127.0.0.1", 1)
        try:
            yield
        finally:
            client.replicaof("NO", "ONE")


def account_of_redis(rights: str, password: str = "right-password") -> Break:
    """Break by another Redis account with this password."""

    @contextmanager
    def broken(deployment: Deployment) -> Iterator[None]:
        with deployment.redis() as client:
            client.execute_command("ACL", "SETUSER", "patient", "on", ">right-password", *rights.split())
            scheme, _, address = deployment.environment["REDIS_URL"].partition("://")
            deployment.environment["REDIS_URL"] = (
                f"{scheme}://patient:{password}@{address.rpartition('@')[2]}"
            )
            try:
                yield
            finally:
                client.execute_command("ACL", "DELUSER", "patient")

    return broken


def nobody_of(*roles: str) -> Break:
    """Break by stopping the processes of these roles."""

    @contextmanager
    def broken(deployment: Deployment) -> Iterator[None]:
        with deployment.redis() as client:
            for member in client.zrange(PROCESSES, 0, -1):
                if any(role.encode() in member for role in roles):
                    client.zrem(PROCESSES, member)
            yield

    return broken


@contextmanager
def wrong_password(deployment: Deployment) -> Iterator[None]:
    deployment.log_in_as(deployment.user, "not-the-password")
    yield


@contextmanager
def user_without_rights(deployment: Deployment) -> Iterator[None]:
    user = f"newcomer_{uuid4().hex[:8]}"
    deployment.sql(f"CREATE ROLE {user} LOGIN PASSWORD 'newcomer-password'")
    deployment.log_in_as(user, "newcomer-password")
    try:
        yield
    finally:
        deployment.sql(f"DROP ROLE {user}")


@contextmanager
def user_who_may_not_act_as_session_flows(deployment: Deployment) -> Iterator[None]:
    user = f"older_{uuid4().hex[:8]}"
    deployment.sql(f"CREATE ROLE {user} LOGIN PASSWORD 'older-password'")
    deployment.sql(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {user}")
    deployment.log_in_as(user, "older-password")
    try:
        yield
    finally:
        deployment.sql(f"DROP OWNED BY {user}")
        deployment.sql(f"DROP ROLE {user}")


@contextmanager
def owner_where_tenants_are_guarded(deployment: Deployment) -> Iterator[None]:
    deployment.environment |= {"DATABASE_URL": deployment.owner_url, "PARLEY_ROW_SECURITY": "true"}
    yield


@contextmanager
def empty_database(deployment: Deployment) -> Iterator[None]:
    name = f"empty_{uuid4().hex[:8]}"
    deployment.sql(f"CREATE DATABASE {name}")
    deployment.environment["DATABASE_URL"] = f"{deployment.owner_url.rpartition('/')[0]}/{name}"
    try:
        yield
    finally:
        deployment.sql(f"DROP DATABASE {name} WITH (FORCE)")


_SCHEMA = "UPDATE alembic_version SET version_num = '{}'"
older_schema = stated(_SCHEMA.format("0000"), _SCHEMA.format(HEAD))
newer_schema = stated(_SCHEMA.format("9999"), _SCHEMA.format(HEAD))
read_only_database = stated(
    "ALTER ROLE {user} SET default_transaction_read_only = on",
    "ALTER ROLE {user} RESET default_transaction_read_only",
)
_OURS_FIRST = "ALTER ROLE {user} SET search_path = public, pg_catalog"
fast_clock = stated(
    "CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS"
    f" 'SELECT pg_catalog.clock_timestamp() + interval ''1 minute'''; {_OURS_FIRST}",
    "ALTER ROLE {user} RESET search_path; DROP FUNCTION public.clock_timestamp()",
)
"""Break by a wrong clock of the server for this user, because the machine's clock can't be changed."""
no_pgvector = stated(
    "CREATE VIEW public.pg_available_extensions AS"
    " SELECT * FROM pg_catalog.pg_available_extensions WHERE name <> 'vector';"
    f" GRANT SELECT ON public.pg_available_extensions TO PUBLIC; {_OURS_FIRST}",
    "ALTER ROLE {user} RESET search_path; DROP VIEW public.pg_available_extensions",
)


@contextmanager
def endpoint_that_refuses(deployment: Deployment) -> Iterator[None]:
    """Break by a model endpoint that rejects the key."""
    with answering(lambda _: (401, {})) as url:
        deployment.environment |= {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "expired-key"}
        yield


@contextmanager
def open_flower(deployment: Deployment) -> Iterator[None]:
    """Break by a Flower that was started without `parley serve flower`, which would refuse."""
    with answering(lambda _: (200, {}), host=ELSEWHERE) as url:
        deployment.environment["PARLEY_FLOWER_URL"] = url
        yield
