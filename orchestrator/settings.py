"""What a process is told by its environment: read once, validated, frozen, passed on.

A domain's own configuration is in its folder; secrets are only here, or in files that are named here:
``DATABASE_URL_FILE`` is a file that holds what ``DATABASE_URL`` would.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from orchestrator.errors import ConfigurationError, Problem
from orchestrator.redaction import password_of
from orchestrator.types import Json

OPENAI_URL = "https://api.openai.com/v1"
"""Where a key without an address belongs."""


SECRETS = (
    "DATABASE_URL",
    "REDIS_URL",
    "PARLEY_BROKER_URL",
    "OPENAI_API_KEY",
    "PARLEY_API_KEY",
    "FLOWER_BASIC_AUTH",
)
"""What commands besides the settings take from files."""
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD)$")
"""How variables of the environment with secrets are called, those of tools as well."""


class ModelEndpoint(BaseModel):
    """A further place where models answer, besides the one of ``OPENAI_BASE_URL``.

    `token_limit_field` is what the endpoint calls the limit of an answer; `extra_body` goes into
    every request.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    base_url: str = Field(repr=False)
    api_key: SecretStr | None = None
    token_limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"  # noqa: S105
    extra_body: dict[str, Json] = Field(default_factory=dict)


def read_variable(name: str) -> str | None:
    """A variable of the environment, or what the file holds that ``<name>_FILE`` names.

    Raises ConfigurationError when that file cannot be read.
    """
    value = os.environ.get(name)
    return value if value is not None else _read_file(name)


def read_environment() -> dict[str, str]:
    """The environment, with the secrets that are left in files at their places."""
    named = [name.removesuffix("_FILE") for name in os.environ if name.endswith("_FILE")]
    secrets = {name: read_variable(name) for name in SECRETS if name in named}
    return {**os.environ, **{name: value for name, value in secrets.items() if value}}


def _read_file(name: str) -> str | None:
    place = os.environ.get(f"{name}_FILE")
    if not place:
        return None
    try:
        return Path(place).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError([Problem(f"{name}_FILE", f"cannot be read: {error}")]) from error


class _SecretFiles(EnvSettingsSource):
    """Reads what is left in files; a variable of the environment itself goes before."""

    def _load_env_vars(self) -> Mapping[str, str | None]:
        aliases = [field.alias for field in self.settings_cls.model_fields.values() if field.alias]
        found = {alias: _read_file(alias) for alias in aliases}
        return {alias.lower(): value for alias, value in found.items() if value is not None}


class Settings(BaseSettings):
    """Names are read in capitals: ``DATABASE_URL``, ``REDIS_URL``; ours begin with ``PARLEY_``."""

    model_config = SettingsConfigDict(
        frozen=True, extra="ignore", populate_by_name=True, hide_input_in_errors=True
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003  # its parent's arguments
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, _SecretFiles(settings_cls)

    database_url: str = Field(alias="DATABASE_URL", repr=False)
    """PostgreSQL: the only durable truth. `postgresql://user:password@host:port/name`."""
    redis_url: str = Field(alias="REDIS_URL", repr=False)
    """Redis: messages, the scratchpad and live events. `redis://` or `rediss://`."""
    broker_url: str | None = Field(None, alias="PARLEY_BROKER_URL", repr=False)
    """Celery's broker; Redis when it is not set."""
    domain: str = Field("travel", alias="PARLEY_DOMAIN")
    """Name of a shipped domain or path of a folder; sessions that name none get this one."""

    openai_api_key: SecretStr | None = Field(None, alias="OPENAI_API_KEY")
    """The key of the model endpoint."""
    openai_base_url: str | None = Field(None, alias="OPENAI_BASE_URL", repr=False)
    """Either of the two makes a model endpoint; without both, System 1 and direct mode do the work."""
    model: str = Field("gpt-4o-mini", alias="PARLEY_MODEL")
    """The model where a domain names none."""
    fallback_model: str | None = Field(None, alias="PARLEY_FALLBACK_MODEL")
    """Asked, at the same endpoint, when the model fails and a domain names no fallback of its own."""
    embedding_model: str = Field("text-embedding-3-small", alias="PARLEY_EMBEDDING_MODEL")
    """Embeds documents at the same endpoint; empty, or without an endpoint: embeddings without a model."""
    model_endpoints: dict[str, ModelEndpoint] = Field(
        default_factory=dict[str, ModelEndpoint], alias="PARLEY_MODEL_ENDPOINTS"
    )
    """JSON: further endpoints by the name that a domain's `provider` uses."""
    model_failures: int = Field(5, alias="PARLEY_MODEL_FAILURES", ge=1)
    """So many failures in a row, and a model is left alone for the cooling time."""
    model_cooling_s: float = Field(15.0, alias="PARLEY_MODEL_COOLING_S", ge=0)
    """The cooling time of a model that failed too often, in seconds."""

    auth: Literal["open", "required"] = Field("open", alias="PARLEY_AUTH")
    """``required``: the gateway asks everybody for a key or a token. ``open`` is for loopback only."""
    jwt_key: SecretStr | None = Field(None, alias="PARLEY_JWT_KEY")
    """Accept tokens signed with this secret (HS256); at least 32 bytes."""
    jwt_jwks: str | None = Field(None, alias="PARLEY_JWT_JWKS")
    """Accept tokens signed with one of these public keys (RS256, ES256): a JSON Web Key Set."""
    jwt_audience: str | None = Field(None, alias="PARLEY_JWT_AUDIENCE")
    """Required with tokens: whom a token must be meant for."""
    jwt_issuer: str | None = Field(None, alias="PARLEY_JWT_ISSUER")
    """Required with tokens: who must have made it."""
    cors_origins: tuple[str, ...] = Field((), alias="PARLEY_CORS_ORIGINS")
    """JSON list: web origins whose pages may call the gateway. None by default."""
    docs: bool = Field(True, alias="PARLEY_DOCS")
    """Whether the gateway shows its API at ``/docs``, to everybody who reaches it."""
    open_metrics: bool = Field(False, alias="PARLEY_OPEN_METRICS")
    """Whether ``/metrics`` is shown to those who did not say who they are, when others are asked."""
    caller_rate: int = Field(3000, alias="PARLEY_CALLER_RATE", ge=0)
    """Requests per minute of one key or token holder; 0: no limit. Nobody is counted while auth is open."""
    tenant_rate: int = Field(30_000, alias="PARLEY_TENANT_RATE", ge=0)
    """Requests per minute of one tenant; 0: no limit."""
    session_rate: int = Field(240, alias="PARLEY_SESSION_RATE", ge=0)
    """Turns per minute that one session may be sent over HTTP; 0: no limit."""
    row_security: bool = Field(False, alias="PARLEY_ROW_SECURITY")
    """Name the tenant in every transaction of the gateway: with a user of the role ``parley_gateway``."""

    webhook_networks: tuple[str, ...] = Field((), alias="PARLEY_WEBHOOK_NETWORKS")
    """JSON list: private networks, as ``10.1.0.0/16``, that webhooks may reach. None by default."""
    webhook_timeout_s: float = Field(10.0, alias="PARLEY_WEBHOOK_TIMEOUT_S", gt=0)
    """How long a receiver of webhooks may take to answer, in seconds."""
    webhook_give_up_s: float = Field(3 * 86_400.0, alias="PARLEY_WEBHOOK_GIVE_UP_S", gt=0)
    """A receiver that has failed for so long is told nothing more until an operator says so."""

    database_pool_size: int = Field(8, alias="PARLEY_DATABASE_POOL_SIZE", ge=2)
    """Connections of the hot path, in each process."""
    lanes_per_process: int = Field(1000, alias="PARLEY_LANES_PER_PROCESS", ge=1)
    """How many sessions one worker process runs side by side."""
    lease_ttl_s: float = Field(15.0, alias="PARLEY_LEASE_TTL_S", gt=0)
    """How long a session stays with a worker that cannot be heard and whose connection still stands, in seconds."""
    sweep_every_s: float = Field(0.5, alias="PARLEY_SWEEP_EVERY_S", gt=0)
    """How often each worker looks for sessions that nobody works on, in seconds."""
    sweep_grace_s: float = Field(1.0, alias="PARLEY_SWEEP_GRACE_S", ge=0)
    """How long a session may be ready before that look counts it as forgotten, in seconds."""
    turn_deadline_s: float = Field(120.0, alias="PARLEY_TURN_DEADLINE_S", gt=0)
    """The time a turn has from its first claim, in seconds."""
    sequence_gap_timeout_s: float = Field(30.0, alias="PARLEY_SEQUENCE_GAP_TIMEOUT_S", gt=0)
    """How long a lane waits for a missing predecessor in `sequence`, in seconds."""
    shutdown_grace_s: float = Field(25.0, alias="PARLEY_SHUTDOWN_GRACE_S", ge=0)
    """Running turns get this long to end when a worker is asked to stop; the rest is handed back."""
    runner_linger_s: float = Field(5.0, alias="PARLEY_RUNNER_LINGER_S", ge=0)
    """How long a runner without work waits before it ends and has to be woken again."""
    flower_url: str | None = Field(None, alias="PARLEY_FLOWER_URL", pattern=r"^https?://\S+$")
    """Where people find Flower; the inspector links to it."""
    remote_control: bool = Field(False, alias="PARLEY_REMOTE_CONTROL")
    """Whether workers obey Celery's remote control: whoever reaches the broker can then stop them."""
    defer_above_s: float = Field(0.25, alias="PARLEY_DEFER_ABOVE_S", gt=0)
    """Housekeeping is put off while recent turns wait longer than this for a worker (95th percentile)."""
    defer_at_most_s: float = Field(60.0, alias="PARLEY_DEFER_AT_MOST_S", ge=0)
    """Housekeeping that waited so long is done all the same, a little at a time."""
    housekeeping_nice: int = Field(10, alias="PARLEY_HOUSEKEEPING_NICE", ge=0, le=19)
    """How far processes that run no turns stand back from those that do when processors are scarce."""
    trained_folder: Path | None = Field(None, alias="PARLEY_TRAINED_FOLDER")
    """Where models that System 1 has trained are kept for the next process; trained at every start when not set."""
    pulse_file: Path | None = Field(None, alias="PARLEY_PULSE_FILE")
    """Rewritten every second by a worker or beat that moves, for `parley health`; no file when not set."""
    max_attempts: int = Field(3, alias="PARLEY_MAX_ATTEMPTS", ge=1)
    """Attempts before a turn is quarantined."""
    metrics_port: int | None = Field(None, alias="PARLEY_METRICS_PORT", ge=1, le=65535)
    """Where a worker tells its metrics over HTTP; nowhere when it is not set. The gateway has ``/metrics``."""
    metrics_host: str = Field("127.0.0.1", alias="PARLEY_METRICS_HOST")
    """The address on which it does."""
    session_inbox_limit: int = Field(100, alias="PARLEY_SESSION_INBOX_LIMIT", ge=1)
    """Unfinished turns of one session; more are refused."""
    total_inbox_limit: int = Field(200_000, alias="PARLEY_TOTAL_INBOX_LIMIT", ge=1)
    """Unfinished turns of all sessions together; more are refused."""


def known_secrets(settings: Settings) -> frozenset[str]:
    """What this process knows and nobody may read in its logs."""
    endpoints = (endpoint.api_key for endpoint in settings.model_endpoints.values())
    keys = (settings.openai_api_key, settings.jwt_key, *endpoints)
    found = {key.get_secret_value() for key in keys if key is not None}
    addresses = (settings.database_url, settings.redis_url, settings.broker_url, settings.openai_base_url)
    found |= {password for address in addresses if address for password in password_of(address)}
    return frozenset(found) | environment_secrets()


def environment_secrets() -> frozenset[str]:
    """What the environment holds that nobody may read, whether or not the settings can be read."""
    try:
        environment = read_environment()
    except ConfigurationError:  # a file that cannot be read tells us no secret; whoever needs it complains
        environment = dict(os.environ)
    found = {value for name, value in environment.items() if _SECRET_NAME.search(name)}
    found |= {password for value in environment.values() for password in password_of(value)}
    for user in environment.get("FLOWER_BASIC_AUTH", "").split(","):
        found.add(user.partition(":")[2])
    for header in environment.get("OTEL_EXPORTER_OTLP_HEADERS", "").split(","):
        found.add(header.partition("=")[2].strip())
    return frozenset(found)


@cache
def load_settings() -> Settings:
    """The settings of this process. Raises pydantic's ValidationError naming what is missing."""
    return Settings()  # pyright: ignore[reportCallIssue]  # filled from the environment
