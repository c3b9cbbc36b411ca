"""A process's settings, read once from the environment, validated and frozen.

A domain's configuration is in its folder. Secrets come only from the environment, or from files named there.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, ValidationError
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
from orchestrator.settings.environment import environment_secrets, read_secret_file
from orchestrator.settings.fields import (
    EVERYBODY,
    GATEWAY,
    INTERNAL,
    LISTENING,
    PULSES,
    SERVING,
    STORES,
    TURNS,
    WORKERS,
    BrokerAddress,
    DatabaseAddress,
    Form,
    MayBeEmpty,
    ModelEndpoint,
    Network,
    PerMinute,
    RedisAddress,
    Seconds,
    WebAddress,
)

OPENAI_URL = "https://api.openai.com/v1"
"""The endpoint URL if only an API key is configured."""

NO_STORES = {"DATABASE_URL": "postgresql://", "REDIS_URL": "redis://"}
"""Placeholder store URLs, for commands that need only other settings."""


# Variables that other programs also use.
_SHARED = ("DATABASE_URL", "REDIS_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL")


def variable_of(setting: str) -> str:
    """Return a setting's environment variable, which starts with ``PARLEY_`` unless it is shared."""
    name = setting.upper()
    return name if name in _SHARED else f"PARLEY_{name}"


class _SecretFiles(EnvSettingsSource):
    """A settings source that reads secrets from files. Environment variables take precedence."""

    def _load_env_vars(self) -> Mapping[str, str | None]:
        aliases = [field.alias for field in self.settings_cls.model_fields.values() if field.alias]
        found = {alias: read_secret_file(alias) for alias in aliases}
        return {alias.lower(): value for alias, value in found.items() if value is not None}


class Settings(BaseSettings):
    """Settings from environment variables, most of which start with ``PARLEY_``."""

    model_config = SettingsConfigDict(
        alias_generator=variable_of,
        frozen=True,
        extra="ignore",
        populate_by_name=True,
        hide_input_in_errors=True,
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003  # same arguments as the base class
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, _SecretFiles(settings_cls)

    database_url: Annotated[DatabaseAddress, STORES] = Field(repr=False)
    """The URL of PostgreSQL, the only durable store: `postgresql://user:password@host:port/name`."""
    direct_database_url: Annotated[DatabaseAddress | None, SERVING] = Field(None, repr=False)
    """A direct PostgreSQL URL. Required if `DATABASE_URL` is a pooler that shares connections between transactions."""
    redis_url: Annotated[RedisAddress, EVERYBODY] = Field(repr=False)
    """The URL of Redis, for messages, the scratchpad and live events: `redis://`, `rediss://` or
    `redis+sentinel://`.
    """
    broker_url: Annotated[BrokerAddress | None, MayBeEmpty, EVERYBODY] = Field(None, repr=False)
    """Celery's broker URL. Default: the Redis URL."""
    domain: Annotated[str, STORES] = "travel"
    """The default domain of sessions: the name of a built-in domain, or the path to a domain folder."""

    openai_api_key: Annotated[SecretStr | None, SERVING] = None
    """The API key of the model endpoint."""
    openai_base_url: Annotated[WebAddress | None, MayBeEmpty, SERVING] = Field(None, repr=False)
    """The URL of the model endpoint. A key or a URL configures the endpoint. Without an endpoint or another
    provider, Parley uses only the local classifier.
    """
    model: Annotated[str, WORKERS] = "gpt-4o-mini"
    """The default model for domains: a model name at the endpoint `OPENAI_BASE_URL`, or `provider:name`, such
    as `anthropic:claude-sonnet-4-5`.
    """
    fallback_model: Annotated[str | None, WORKERS] = None
    """The default fallback model for domains, as a name or `provider:name`."""
    embedding_model: Annotated[str, SERVING] = "text-embedding-3-small"
    """The embedding model at the endpoint `OPENAI_BASE_URL`.

    If the model is empty or the endpoint is not set, Parley computes embeddings without a model.
    """
    model_endpoints: Annotated[dict[str, ModelEndpoint], WORKERS] = Field(
        default_factory=dict[str, ModelEndpoint]
    )
    """JSON object: additional model endpoints, by the name that a domain sets as its `provider`."""
    keep_prompts: Annotated[bool, TURNS] = False
    """Store model prompts and answers with each turn, so that operators can read them in the inspector.

    They contain users' messages, memories and tool results; secrets are hidden. `parley up` enables this
    setting.
    """
    development: Annotated[bool, TURNS] = False
    """Enable the commands that a domain marks with `development`. `parley up` enables this setting."""
    model_failures: Annotated[int, WORKERS, Form("failures")] = Field(5, ge=1)
    """The number of consecutive failures after which calls to a model are suspended."""
    model_cooling_s: Annotated[Seconds, WORKERS] = Field(15.0, ge=0)
    """Time that calls to a failing model are suspended, in seconds."""

    auth: Annotated[Literal["open", "required"], GATEWAY] = "open"
    """``required``: the gateway requires a key or a token. ``open``: no authentication, on loopback only."""
    jwt_key: Annotated[SecretStr | None, GATEWAY] = None
    """The secret for verifying tokens (HS256), at least 32 bytes."""
    jwt_jwks: Annotated[str | None, GATEWAY] = None
    """The JSON Web Key Set with public keys for verifying tokens (RS256, ES256)."""
    jwt_audience: Annotated[str | None, GATEWAY] = None
    """The audience that tokens must have. Required if tokens are accepted."""
    jwt_issuer: Annotated[str | None, GATEWAY] = None
    """The issuer that tokens must have. Required if tokens are accepted."""
    cors_origins: Annotated[tuple[str, ...], GATEWAY] = ()
    """JSON list of web origins whose pages can call the gateway. Default: none."""
    trusted_proxies: Annotated[tuple[Network, ...], GATEWAY] = ()
    """JSON list of the networks of reverse proxies in front of the gateway, such as ``["10.1.0.0/16"]``. The
    gateway trusts ``X-Forwarded-For`` and ``X-Forwarded-Proto`` only from these networks. Default: none.
    """
    docs: Annotated[bool, GATEWAY] = True
    """Serve the gateway's API documentation at ``/docs``, without authentication."""
    longest_response_s: Annotated[Seconds, GATEWAY] = Field(0, ge=0)
    """Maximum duration of a waiting call or an event stream in seconds, for proxies with a timeout.

    Clients repeat such calls, and streams resume. 0: no limit.
    """
    owner_only: Annotated[bool, LISTENING] = False
    """Accept connections only from programs of the same operating system user and of root.

    `parley up` enables this setting. A gateway with authentication doesn't need it.
    """
    open_metrics: Annotated[bool, GATEWAY] = False
    """Serve ``/metrics`` without credentials, even if other routes require them."""
    caller_rate: Annotated[PerMinute, GATEWAY] = Field(3000, ge=0)
    """Maximum number of requests per minute per user (across all keys and tokens) or per backend key.

    0: no limit. Has no effect without authentication.
    """
    tenant_rate: Annotated[PerMinute, GATEWAY] = Field(30_000, ge=0)
    """Maximum number of requests per minute per tenant. 0: no limit."""
    session_rate: Annotated[PerMinute, GATEWAY] = Field(240, ge=0)
    """Maximum number of turns per minute per session, submitted over HTTP. 0: no limit."""
    row_security: Annotated[bool, GATEWAY] = False
    """Set the tenant in every transaction of the gateway, so that PostgreSQL hides other tenants' rows.
    Requires a database user with the role ``parley_gateway``.
    """

    public_url: Annotated[WebAddress, TURNS] = "http://127.0.0.1:8600"
    """The gateway's URL for other systems.

    Asynchronous tools send their results to this URL. `parley up` sets it.
    """

    webhook_networks: Annotated[tuple[Network, ...], INTERNAL] = ()
    """JSON list of private networks that webhooks can reach, such as ``["10.1.0.0/16"]``. Default: none."""
    webhook_timeout_s: Annotated[Seconds, INTERNAL] = Field(10.0, gt=0)
    """Timeout of each attempt to deliver an event to a webhook, in seconds."""
    webhook_give_up_s: Annotated[Seconds, INTERNAL] = Field(3 * 86_400.0, gt=0)
    """Time after which deliveries to a failing receiver stop until an operator retries them, in seconds."""

    database_pool_size: Annotated[int, STORES, Form("connections")] = Field(8, ge=2)
    """Maximum number of database connections per process, in addition to those for background flows."""
    lanes_per_process: Annotated[int, TURNS, Form("sessions")] = Field(1000, ge=1)
    """Maximum number of sessions that a worker process runs concurrently."""
    lease_ttl_s: Annotated[Seconds, WORKERS] = Field(15.0, gt=0)
    """Time after which an unresponsive worker with an intact connection loses its sessions, in seconds."""
    sweep_every_s: Annotated[Seconds, WORKERS] = Field(1.0, gt=0)
    """Interval between each worker's searches for unclaimed sessions, in seconds."""
    sweep_grace_s: Annotated[Seconds, WORKERS] = Field(1.0, ge=0)
    """Minimum time that a session has been ready before the search offers it to workers, in seconds."""
    turn_deadline_s: Annotated[Seconds, TURNS] = Field(120.0, gt=0)
    """Maximum duration of a turn from its first claim, in seconds."""
    sequence_gap_timeout_s: Annotated[Seconds, WORKERS] = Field(30.0, gt=0)
    """Maximum time that a session waits for a turn that is missing in the client's `sequence`, in seconds."""
    shutdown_grace_s: Annotated[Seconds, WORKERS] = Field(25.0, ge=0)
    """Time for running turns to finish when a worker stops, in seconds. Other workers retry unfinished turns."""
    runner_linger_s: Annotated[Seconds, TURNS] = Field(5.0, ge=0)
    """Time that an idle worker waits for sessions before its Celery task ends, in seconds."""
    flower_url: Annotated[WebAddress | None, MayBeEmpty, GATEWAY] = None
    """The URL of Flower, which the inspector links to."""
    evaluations_folder: Annotated[Path | None, GATEWAY] = None
    """The folder with results of `parley eval`, which the inspector shows to operators. `parley up` sets it."""
    remote_control: Annotated[bool, WORKERS] = False
    """Enable Celery's remote control. Anyone with access to the broker can then stop workers."""
    defer_above_s: Annotated[Seconds, INTERNAL] = Field(0.25, gt=0)
    """Defer maintenance while the 95th percentile of recent turns' waits for a worker exceeds this many seconds."""
    defer_at_most_s: Annotated[Seconds, INTERNAL] = Field(60.0, ge=0)
    """Maximum time that maintenance is deferred, in seconds. After that, maintenance runs slowly."""
    background_nice: Annotated[int, INTERNAL, Form("nice increment")] = Field(10, ge=0, le=19)
    """Reduction of the CPU priority of workers for background flows, as a nice increment."""
    trained_folder: Annotated[Path | None, WORKERS] = None
    """The folder that stores trained local classifiers for reuse. Default: train at every start."""
    heartbeat_file: Annotated[Path | None, PULSES] = None
    """A file that a responsive worker or scheduler updates every second, for `parley health`.

    Default: none.
    """
    max_attempts: Annotated[int, WORKERS, Form("attempts")] = Field(3, ge=1)
    """Maximum number of attempts at a turn before it is quarantined, or at part of a background run before it fails."""
    metrics_port: Annotated[int | None, WORKERS, Form("port number")] = Field(None, ge=1, le=65535)
    """The port of a worker's HTTP metrics endpoint. Default: none. The gateway serves ``/metrics``."""
    metrics_host: Annotated[str, WORKERS] = "127.0.0.1"
    """The host of a worker's HTTP metrics endpoint."""
    session_inbox_limit: Annotated[int, SERVING, Form("turns")] = Field(100, ge=1)
    """Maximum number of unfinished turns per session. Parley rejects further turns."""
    total_inbox_limit: Annotated[int, SERVING, Form("turns")] = Field(200_000, ge=1)
    """Maximum number of unfinished turns across all sessions. Parley rejects further turns."""


def known_secrets(settings: Settings) -> frozenset[str]:
    """Return the process's secrets, which must not appear in logs."""
    endpoints = (endpoint.api_key for endpoint in settings.model_endpoints.values())
    keys = (settings.openai_api_key, settings.jwt_key, *endpoints)
    found = {key.get_secret_value() for key in keys if key is not None}
    addresses = (
        *(settings.database_url, settings.direct_database_url),
        *(settings.redis_url, settings.broker_url, settings.openai_base_url),
    )
    found |= {password for address in addresses if address for password in password_of(address)}
    return frozenset(found) | environment_secrets()


@cache
def load_settings() -> Settings:
    """Return the process's settings, which are read only once.

    Raises ConfigurationError with all missing and invalid variables.
    """
    return read_settings()


def read_settings(**given: str) -> Settings:
    """Read the settings from the environment and from `given`, which takes precedence.

    Raises ConfigurationError with all missing and invalid variables.
    """
    try:
        return Settings(**given)  # pyright: ignore[reportArgumentType]  # the rest: environment
    except (ValidationError, SettingsError) as error:
        raise ConfigurationError(_find_problems(error)) from None


def _find_problems(error: ValidationError | SettingsError) -> list[Problem]:
    """Return one problem per variable, without the variable's value."""
    if isinstance(error, SettingsError):
        return [_not_json(error)]
    return [
        Problem(".".join(str(part) for part in found["loc"]), _advise(found))
        for found in error.errors(include_url=False, include_input=False)
    ]


def _advise(found: ErrorDetails) -> str:
    name = str(found["loc"][0])
    if found["type"] == "missing" and len(found["loc"]) == 1:
        return f"is not set; set it, or {name}_FILE to a file that contains it"
    said = found["msg"].removeprefix("Input ").removeprefix("Value error, ")
    required = any(field.alias == name and field.is_required() for field in Settings.model_fields.values())
    return f"{said[0].lower()}{said[1:]}; correct it" + ("" if required else ", or unset it for the default")


def _not_json(error: SettingsError) -> Problem:
    """Return the problem for a value that is not JSON.

    Pydantic names the field only in its message.
    """
    (name,) = re.findall(r'field "(\w+)"', str(error)) or [""]
    field = Settings.model_fields.get(name)
    variable = field.alias if field is not None and field.alias else name
    return Problem(variable, "should be JSON; correct it, or unset it for the default")
