"""What a process is told by its environment: read once, validated, frozen, passed on.

A domain's own configuration is in its folder; secrets are only here, or in files that are named here:
``DATABASE_URL_FILE`` is a file that holds what ``DATABASE_URL`` would.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
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


NO_STORES = {"DATABASE_URL": "postgresql://", "REDIS_URL": "redis://"}
"""In place of the stores' addresses, where only other settings matter."""


def _begins_with(*schemes: str) -> AfterValidator:
    def check(address: str) -> str:
        if not address.startswith(tuple(f"{scheme}://" for scheme in schemes)):
            raise ValueError(f"should begin with {' or '.join(f'{scheme}://' for scheme in schemes)}")
        return address

    return AfterValidator(check)


def _unset_if_empty(value: object) -> object:
    return None if value == "" else value


_SENTINELS = re.compile(
    r"redis\+sentinel://(?:[^@/]*@)?[^,/:]+(?::\d+)?(?:,[^,/:]+(?::\d+)?)*/[^/]+(?:/\d*)?"
)


def _check_sentinels(address: str) -> str:
    if address.startswith("redis+sentinel:") and not _SENTINELS.fullmatch(address):
        raise ValueError("should be redis+sentinel://user:password@host:port,host:port/master/database")
    return address


def _check_network(network: str) -> str:
    try:
        ipaddress.ip_network(network)
    except ValueError:
        raise ValueError("should be a network such as 10.1.0.0/16") from None
    return network


@dataclass(frozen=True, slots=True)
class Form:
    """What a value counts, or how it is written, where its type does not say."""

    name: str


DatabaseAddress = Annotated[str, _begins_with("postgresql"), Form("address")]
WebAddress = Annotated[str, _begins_with("http", "https"), Form("address")]
RedisAddress = Annotated[
    str, _begins_with("redis", "rediss", "redis+sentinel"), AfterValidator(_check_sentinels), Form("address")
]
BrokerAddress = Annotated[
    str,
    _begins_with("redis", "rediss", "redis+sentinel", "amqp", "amqps"),
    AfterValidator(_check_sentinels),
    Form("address"),
]
MayBeEmpty = BeforeValidator(_unset_if_empty)
"""A secret that a deployment has to provide and has no use for is an empty file."""
Network = Annotated[str, AfterValidator(_check_network)]


@dataclass(frozen=True, slots=True)
class ReadBy:
    """The roles that a setting means something to, as `parley serve` names them."""

    roles: tuple[str, ...]


GATEWAY = ReadBy(("gateway",))
TURNS = ReadBy(("turns",))
INTERNAL = ReadBy(("internal",))
WORKERS = ReadBy(("turns", "internal"))
PULSES = ReadBy(("turns", "internal", "beat"))
SERVING = ReadBy(("gateway", "turns", "internal"))
STORES = ReadBy(("gateway", "turns", "internal", "beat"))
EVERYBODY = ReadBy(("gateway", "turns", "internal", "beat", "flower"))
Seconds = Annotated[float, Form("seconds")]
PerMinute = Annotated[int, Form("per minute")]


class ModelEndpoint(BaseModel):
    """A further place where models answer, besides the one of ``OPENAI_BASE_URL``.

    `token_limit_field` is what the endpoint calls the limit of an answer; `extra_body` goes into
    every request.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    base_url: WebAddress = Field(repr=False)
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

    database_url: Annotated[DatabaseAddress, STORES] = Field(alias="DATABASE_URL", repr=False)
    """PostgreSQL: the only durable truth. `postgresql://user:password@host:port/name`."""
    direct_database_url: Annotated[DatabaseAddress | None, SERVING] = Field(
        None, alias="PARLEY_DIRECT_DATABASE_URL", repr=False
    )
    """PostgreSQL itself, where `DATABASE_URL` is a pooler's that shares connections between transactions."""
    redis_url: Annotated[RedisAddress, EVERYBODY] = Field(alias="REDIS_URL", repr=False)
    """Redis: messages, the scratchpad and live events. `redis://`, `rediss://` or `redis+sentinel://`."""
    broker_url: Annotated[BrokerAddress | None, MayBeEmpty, EVERYBODY] = Field(
        None, alias="PARLEY_BROKER_URL", repr=False
    )
    """Celery's broker; Redis when it is not set."""
    domain: Annotated[str, STORES] = Field("travel", alias="PARLEY_DOMAIN")
    """Name of a shipped domain or path of a folder; sessions that name none get this one."""

    openai_api_key: Annotated[SecretStr | None, SERVING] = Field(None, alias="OPENAI_API_KEY")
    """The key of the model endpoint."""
    openai_base_url: Annotated[WebAddress | None, MayBeEmpty, SERVING] = Field(
        None, alias="OPENAI_BASE_URL", repr=False
    )
    """Either of the two makes a model endpoint; without both, System 1 and direct mode do the work."""
    model: Annotated[str, WORKERS] = Field("gpt-4o-mini", alias="PARLEY_MODEL")
    """The model where a domain names none."""
    fallback_model: Annotated[str | None, WORKERS] = Field(None, alias="PARLEY_FALLBACK_MODEL")
    """Asked, at the same endpoint, when the model fails and a domain names no fallback of its own."""
    embedding_model: Annotated[str, SERVING] = Field("text-embedding-3-small", alias="PARLEY_EMBEDDING_MODEL")
    """Embeds documents at the same endpoint; empty, or without an endpoint: embeddings without a model."""
    model_endpoints: Annotated[dict[str, ModelEndpoint], WORKERS] = Field(
        default_factory=dict[str, ModelEndpoint], alias="PARLEY_MODEL_ENDPOINTS"
    )
    """JSON: further endpoints by the name that a domain's `provider` uses."""
    model_failures: Annotated[int, WORKERS, Form("failures")] = Field(5, alias="PARLEY_MODEL_FAILURES", ge=1)
    """So many failures in a row, and a model is left alone for the cooling time."""
    model_cooling_s: Annotated[Seconds, WORKERS] = Field(15.0, alias="PARLEY_MODEL_COOLING_S", ge=0)
    """The cooling time of a model that failed too often, in seconds."""

    auth: Annotated[Literal["open", "required"], GATEWAY] = Field("open", alias="PARLEY_AUTH")
    """``required``: the gateway asks everybody for a key or a token. ``open`` is for loopback only."""
    jwt_key: Annotated[SecretStr | None, GATEWAY] = Field(None, alias="PARLEY_JWT_KEY")
    """Accept tokens signed with this secret (HS256); at least 32 bytes."""
    jwt_jwks: Annotated[str | None, GATEWAY] = Field(None, alias="PARLEY_JWT_JWKS")
    """Accept tokens signed with one of these public keys (RS256, ES256): a JSON Web Key Set."""
    jwt_audience: Annotated[str | None, GATEWAY] = Field(None, alias="PARLEY_JWT_AUDIENCE")
    """Required with tokens: whom a token must be meant for."""
    jwt_issuer: Annotated[str | None, GATEWAY] = Field(None, alias="PARLEY_JWT_ISSUER")
    """Required with tokens: who must have made it."""
    cors_origins: Annotated[tuple[str, ...], GATEWAY] = Field((), alias="PARLEY_CORS_ORIGINS")
    """JSON list: web origins whose pages may call the gateway. None by default."""
    docs: Annotated[bool, GATEWAY] = Field(True, alias="PARLEY_DOCS")
    """Whether the gateway shows its API at ``/docs``, to everybody who reaches it."""
    open_metrics: Annotated[bool, GATEWAY] = Field(False, alias="PARLEY_OPEN_METRICS")
    """Whether ``/metrics`` is shown to those who did not say who they are, when others are asked."""
    caller_rate: Annotated[PerMinute, GATEWAY] = Field(3000, alias="PARLEY_CALLER_RATE", ge=0)
    """Requests per minute of one key or token holder; 0: no limit. Nobody is counted while auth is open."""
    tenant_rate: Annotated[PerMinute, GATEWAY] = Field(30_000, alias="PARLEY_TENANT_RATE", ge=0)
    """Requests per minute of one tenant; 0: no limit."""
    session_rate: Annotated[PerMinute, GATEWAY] = Field(240, alias="PARLEY_SESSION_RATE", ge=0)
    """Turns per minute that one session may be sent over HTTP; 0: no limit."""
    row_security: Annotated[bool, GATEWAY] = Field(False, alias="PARLEY_ROW_SECURITY")
    """Name the tenant in every transaction of the gateway: with a user of the role ``parley_gateway``."""

    webhook_networks: Annotated[tuple[Network, ...], INTERNAL] = Field((), alias="PARLEY_WEBHOOK_NETWORKS")
    """JSON list: private networks, as ``10.1.0.0/16``, that webhooks may reach. None by default."""
    webhook_timeout_s: Annotated[Seconds, INTERNAL] = Field(10.0, alias="PARLEY_WEBHOOK_TIMEOUT_S", gt=0)
    """How long a receiver of webhooks may take to answer, in seconds."""
    webhook_give_up_s: Annotated[Seconds, INTERNAL] = Field(
        3 * 86_400.0, alias="PARLEY_WEBHOOK_GIVE_UP_S", gt=0
    )
    """A receiver that has failed for so long is told nothing more until an operator says so."""

    database_pool_size: Annotated[int, STORES, Form("connections")] = Field(
        8, alias="PARLEY_DATABASE_POOL_SIZE", ge=2
    )
    """Connections of the hot path, in each process."""
    lanes_per_process: Annotated[int, TURNS, Form("sessions")] = Field(
        1000, alias="PARLEY_LANES_PER_PROCESS", ge=1
    )
    """How many sessions one worker process runs side by side."""
    lease_ttl_s: Annotated[Seconds, WORKERS] = Field(15.0, alias="PARLEY_LEASE_TTL_S", gt=0)
    """How long a session stays with a worker that cannot be heard and whose connection still stands, in seconds."""
    sweep_every_s: Annotated[Seconds, WORKERS] = Field(0.5, alias="PARLEY_SWEEP_EVERY_S", gt=0)
    """How often each worker looks for sessions that nobody works on, in seconds."""
    sweep_grace_s: Annotated[Seconds, WORKERS] = Field(1.0, alias="PARLEY_SWEEP_GRACE_S", ge=0)
    """How long a session may be ready before that look counts it as forgotten, in seconds."""
    turn_deadline_s: Annotated[Seconds, TURNS] = Field(120.0, alias="PARLEY_TURN_DEADLINE_S", gt=0)
    """The time a turn has from its first claim, in seconds."""
    sequence_gap_timeout_s: Annotated[Seconds, WORKERS] = Field(
        30.0, alias="PARLEY_SEQUENCE_GAP_TIMEOUT_S", gt=0
    )
    """How long a lane waits for a missing predecessor in `sequence`, in seconds."""
    shutdown_grace_s: Annotated[Seconds, WORKERS] = Field(25.0, alias="PARLEY_SHUTDOWN_GRACE_S", ge=0)
    """Running turns get this long to end when a worker is asked to stop; the rest is handed back."""
    runner_linger_s: Annotated[Seconds, TURNS] = Field(5.0, alias="PARLEY_RUNNER_LINGER_S", ge=0)
    """How long a runner without work waits before it ends and has to be woken again."""
    flower_url: Annotated[WebAddress | None, MayBeEmpty, GATEWAY] = Field(None, alias="PARLEY_FLOWER_URL")
    """Where people find Flower; the inspector links to it."""
    remote_control: Annotated[bool, WORKERS] = Field(False, alias="PARLEY_REMOTE_CONTROL")
    """Whether workers obey Celery's remote control: whoever reaches the broker can then stop them."""
    defer_above_s: Annotated[Seconds, INTERNAL] = Field(0.25, alias="PARLEY_DEFER_ABOVE_S", gt=0)
    """Housekeeping is put off while recent turns wait longer than this for a worker (95th percentile)."""
    defer_at_most_s: Annotated[Seconds, INTERNAL] = Field(60.0, alias="PARLEY_DEFER_AT_MOST_S", ge=0)
    """Housekeeping that waited so long is done all the same, a little at a time."""
    housekeeping_nice: Annotated[int, INTERNAL, Form("steps of nice")] = Field(
        10, alias="PARLEY_HOUSEKEEPING_NICE", ge=0, le=19
    )
    """How far processes that run no turns stand back from those that do when processors are scarce."""
    trained_folder: Annotated[Path | None, WORKERS] = Field(None, alias="PARLEY_TRAINED_FOLDER")
    """Where models that System 1 has trained are kept for the next process; trained at every start when not set."""
    heartbeat_file: Annotated[Path | None, PULSES] = Field(None, alias="PARLEY_HEARTBEAT_FILE")
    """Rewritten every second by a worker or beat that moves, for `parley health`; no file when not set."""
    max_attempts: Annotated[int, WORKERS, Form("attempts")] = Field(3, alias="PARLEY_MAX_ATTEMPTS", ge=1)
    """Attempts before a turn is quarantined."""
    metrics_port: Annotated[int | None, WORKERS, Form("port number")] = Field(
        None, alias="PARLEY_METRICS_PORT", ge=1, le=65535
    )
    """Where a worker tells its metrics over HTTP; nowhere when it is not set. The gateway has ``/metrics``."""
    metrics_host: Annotated[str, WORKERS] = Field("127.0.0.1", alias="PARLEY_METRICS_HOST")
    """The address on which it does."""
    session_inbox_limit: Annotated[int, SERVING, Form("turns")] = Field(
        100, alias="PARLEY_SESSION_INBOX_LIMIT", ge=1
    )
    """Unfinished turns of one session; more are refused."""
    total_inbox_limit: Annotated[int, SERVING, Form("turns")] = Field(
        200_000, alias="PARLEY_TOTAL_INBOX_LIMIT", ge=1
    )
    """Unfinished turns of all sessions together; more are refused."""


def known_secrets(settings: Settings) -> frozenset[str]:
    """What this process knows and nobody may read in its logs."""
    endpoints = (endpoint.api_key for endpoint in settings.model_endpoints.values())
    keys = (settings.openai_api_key, settings.jwt_key, *endpoints)
    found = {key.get_secret_value() for key in keys if key is not None}
    addresses = (
        *(settings.database_url, settings.direct_database_url),
        *(settings.redis_url, settings.broker_url, settings.openai_base_url),
    )
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
    """The settings of this process. Raises ConfigurationError with every variable that is missing or wrong."""
    return read_settings()


def read_settings(**given: str) -> Settings:
    """What the environment says, but for the variables that are given. Raises ConfigurationError likewise."""
    try:
        return Settings(**given)  # pyright: ignore[reportArgumentType]  # the rest: environment
    except (ValidationError, SettingsError) as error:
        raise ConfigurationError(_find_problems(error)) from None


def _find_problems(error: ValidationError | SettingsError) -> list[Problem]:
    """What is wrong with the environment, one problem for each variable; values are not repeated."""
    if isinstance(error, SettingsError):
        return [_not_json(error)]
    return [
        Problem(".".join(str(part) for part in found["loc"]), _advise(found))
        for found in error.errors(include_url=False, include_input=False)
    ]


def _advise(found: ErrorDetails) -> str:
    name = str(found["loc"][0])
    if found["type"] == "missing" and len(found["loc"]) == 1:
        return f"is not set; set it, or {name}_FILE to a file that holds it"
    said = found["msg"].removeprefix("Input ").removeprefix("Value error, ")
    required = any(field.alias == name and field.is_required() for field in Settings.model_fields.values())
    return f"{said[0].lower()}{said[1:]}; correct it" + ("" if required else ", or unset it for the default")


def _not_json(error: SettingsError) -> Problem:
    """Pydantic names the field in a sentence alone."""
    (name,) = re.findall(r'field "(\w+)"', str(error)) or [""]
    field = Settings.model_fields.get(name)
    variable = field.alias if field is not None and field.alias else name
    return Problem(variable, "should be JSON; correct it, or unset it for the default")
