"""The settings of a process, from its environment: read once, validated, frozen, passed on.

A domain's own configuration is in its folder; secrets are only here, or in files that are named here.
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
"""Where a key without an address belongs."""

NO_STORES = {"DATABASE_URL": "postgresql://", "REDIS_URL": "redis://"}
"""In place of the stores' addresses, where only other settings matter."""


# Variables that other programs read, too.
_SHARED = ("DATABASE_URL", "REDIS_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL")


def variable_of(setting: str) -> str:
    """The variable of a setting: its name in capitals, behind ``PARLEY_`` unless others read it, too."""
    name = setting.upper()
    return name if name in _SHARED else f"PARLEY_{name}"


class _SecretFiles(EnvSettingsSource):
    """Reads what is left in files; a variable of the environment itself goes before."""

    def _load_env_vars(self) -> Mapping[str, str | None]:
        aliases = [field.alias for field in self.settings_cls.model_fields.values() if field.alias]
        found = {alias: read_secret_file(alias) for alias in aliases}
        return {alias.lower(): value for alias, value in found.items() if value is not None}


class Settings(BaseSettings):
    """Names are read in capitals: ``DATABASE_URL``, ``REDIS_URL``; ours begin with ``PARLEY_``."""

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
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003  # its parent's arguments
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, _SecretFiles(settings_cls)

    database_url: Annotated[DatabaseAddress, STORES] = Field(repr=False)
    """PostgreSQL: the only durable truth. `postgresql://user:password@host:port/name`."""
    direct_database_url: Annotated[DatabaseAddress | None, SERVING] = Field(None, repr=False)
    """PostgreSQL itself, where `DATABASE_URL` is a pooler's that shares connections between transactions."""
    redis_url: Annotated[RedisAddress, EVERYBODY] = Field(repr=False)
    """Redis: messages, the scratchpad and live events. `redis://`, `rediss://` or `redis+sentinel://`."""
    broker_url: Annotated[BrokerAddress | None, MayBeEmpty, EVERYBODY] = Field(None, repr=False)
    """Celery's broker; Redis when it is not set."""
    domain: Annotated[str, STORES] = "travel"
    """Name of a shipped domain or path of a folder; sessions that name none get this one."""

    openai_api_key: Annotated[SecretStr | None, SERVING] = None
    """The key of the model endpoint."""
    openai_base_url: Annotated[WebAddress | None, MayBeEmpty, SERVING] = Field(None, repr=False)
    """Either of the two makes a model endpoint; without both, System 1 and direct mode do the work."""
    model: Annotated[str, WORKERS] = "gpt-4o-mini"
    """The model where a domain names none."""
    fallback_model: Annotated[str | None, WORKERS] = None
    """Asked, at the same endpoint, when the model fails and a domain names no fallback of its own."""
    embedding_model: Annotated[str, SERVING] = "text-embedding-3-small"
    """Embeds documents at the same endpoint; empty, or without an endpoint: embeddings without a model."""
    model_endpoints: Annotated[dict[str, ModelEndpoint], WORKERS] = Field(
        default_factory=dict[str, ModelEndpoint]
    )
    """JSON: further endpoints by the name that a domain's `provider` uses."""
    keep_prompts: Annotated[bool, TURNS] = False
    """Keep with each turn what models were asked and what they answered, for operators to read in the inspector. It
    holds what users said, what is remembered of them and what tools returned; secrets are hidden. `parley up` sets
    it."""
    model_failures: Annotated[int, WORKERS, Form("failures")] = Field(5, ge=1)
    """So many failures in a row, and a model is left alone for the cooling time."""
    model_cooling_s: Annotated[Seconds, WORKERS] = Field(15.0, ge=0)
    """The cooling time of a model that failed too often, in seconds."""

    auth: Annotated[Literal["open", "required"], GATEWAY] = "open"
    """``required``: the gateway asks everybody for a key or a token. ``open`` is for loopback only."""
    jwt_key: Annotated[SecretStr | None, GATEWAY] = None
    """Accept tokens signed with this secret (HS256); at least 32 bytes."""
    jwt_jwks: Annotated[str | None, GATEWAY] = None
    """Accept tokens signed with one of these public keys (RS256, ES256): a JSON Web Key Set."""
    jwt_audience: Annotated[str | None, GATEWAY] = None
    """Required with tokens: whom a token must be meant for."""
    jwt_issuer: Annotated[str | None, GATEWAY] = None
    """Required with tokens: who must have made it."""
    cors_origins: Annotated[tuple[str, ...], GATEWAY] = ()
    """JSON list: web origins whose pages may call the gateway. None by default."""
    docs: Annotated[bool, GATEWAY] = True
    """Show the gateway's API at ``/docs``, to everybody who reaches it."""
    longest_response_s: Annotated[Seconds, GATEWAY] = Field(0, ge=0)
    """A call that waits for a turn, and a stream of events, last no longer; clients ask again, streams go on where they
    were. For a proxy that cuts what takes long. 0: as long as they like."""
    owner_only: Annotated[bool, LISTENING] = False
    """Answer only programs of the account that runs the process, and root's; `parley up` sets it. A gateway that
    authenticates callers asks them instead."""
    open_metrics: Annotated[bool, GATEWAY] = False
    """Show ``/metrics`` to those without credentials, when others are asked for theirs."""
    caller_rate: Annotated[PerMinute, GATEWAY] = Field(3000, ge=0)
    """Requests per minute of one key or token holder; 0: no limit. Nobody is counted while auth is open."""
    tenant_rate: Annotated[PerMinute, GATEWAY] = Field(30_000, ge=0)
    """Requests per minute of one tenant; 0: no limit."""
    session_rate: Annotated[PerMinute, GATEWAY] = Field(240, ge=0)
    """Turns per minute that one session may be sent over HTTP; 0: no limit."""
    row_security: Annotated[bool, GATEWAY] = False
    """Name the tenant in every transaction of the gateway: with a user of the role ``parley_gateway``."""

    webhook_networks: Annotated[tuple[Network, ...], INTERNAL] = ()
    """JSON list: private networks, as ``10.1.0.0/16``, that webhooks may reach. None by default."""
    webhook_timeout_s: Annotated[Seconds, INTERNAL] = Field(10.0, gt=0)
    """How long a receiver of webhooks may take to answer, in seconds."""
    webhook_give_up_s: Annotated[Seconds, INTERNAL] = Field(3 * 86_400.0, gt=0)
    """A receiver that has failed for so long is sent nothing more until an operator says so."""

    database_pool_size: Annotated[int, STORES, Form("connections")] = Field(8, ge=2)
    """Connections of the hot path, in each process."""
    lanes_per_process: Annotated[int, TURNS, Form("sessions")] = Field(1000, ge=1)
    """How many sessions one worker process runs side by side."""
    lease_ttl_s: Annotated[Seconds, WORKERS] = Field(15.0, gt=0)
    """How long a session stays with a worker that cannot be heard and whose connection still stands, in seconds."""
    sweep_every_s: Annotated[Seconds, WORKERS] = Field(0.5, gt=0)
    """How often each worker looks for sessions that nobody works on, in seconds."""
    sweep_grace_s: Annotated[Seconds, WORKERS] = Field(1.0, ge=0)
    """How long a session may be ready before that look counts it as forgotten, in seconds."""
    turn_deadline_s: Annotated[Seconds, TURNS] = Field(120.0, gt=0)
    """The time a turn has from its first claim, in seconds."""
    sequence_gap_timeout_s: Annotated[Seconds, WORKERS] = Field(30.0, gt=0)
    """How long a lane waits for a missing predecessor in `sequence`, in seconds."""
    shutdown_grace_s: Annotated[Seconds, WORKERS] = Field(25.0, ge=0)
    """Running turns get this long to end when a worker is asked to stop; the rest is handed back."""
    runner_linger_s: Annotated[Seconds, TURNS] = Field(5.0, ge=0)
    """How long a runner without work waits before it ends and has to be woken again."""
    flower_url: Annotated[WebAddress | None, MayBeEmpty, GATEWAY] = None
    """Where people find Flower; the inspector links to it."""
    evaluations_folder: Annotated[Path | None, GATEWAY] = None
    """Where `parley eval` keeps its runs, which the inspector shows to operators; `parley up` sets it."""
    remote_control: Annotated[bool, WORKERS] = False
    """Let workers obey Celery's remote control: whoever reaches the broker can then stop them."""
    defer_above_s: Annotated[Seconds, INTERNAL] = Field(0.25, gt=0)
    """Housekeeping is put off while recent turns wait longer than this for a worker (95th percentile)."""
    defer_at_most_s: Annotated[Seconds, INTERNAL] = Field(60.0, ge=0)
    """Housekeeping that waited so long is done all the same, a little at a time."""
    housekeeping_nice: Annotated[int, INTERNAL, Form("steps of nice")] = Field(10, ge=0, le=19)
    """How far processes that run no turns stand back from those that do when processors are scarce."""
    trained_folder: Annotated[Path | None, WORKERS] = None
    """Where models that System 1 has trained are kept for the next process; trained at every start when not set."""
    heartbeat_file: Annotated[Path | None, PULSES] = None
    """Rewritten every second by a worker or beat that moves, for `parley health`; no file when not set."""
    max_attempts: Annotated[int, WORKERS, Form("attempts")] = Field(3, ge=1)
    """Attempts before a turn is quarantined."""
    metrics_port: Annotated[int | None, WORKERS, Form("port number")] = Field(None, ge=1, le=65535)
    """Where a worker serves its metrics over HTTP; nowhere when it is not set. The gateway has ``/metrics``."""
    metrics_host: Annotated[str, WORKERS] = "127.0.0.1"
    """The address on which it does."""
    session_inbox_limit: Annotated[int, SERVING, Form("turns")] = Field(100, ge=1)
    """Unfinished turns of one session; more are refused."""
    total_inbox_limit: Annotated[int, SERVING, Form("turns")] = Field(200_000, ge=1)
    """Unfinished turns of all sessions together; more are refused."""


def known_secrets(settings: Settings) -> frozenset[str]:
    """Collect what this process knows and nobody may read in its logs."""
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
    """The settings of this process. Raises ConfigurationError with every variable that is missing or wrong."""
    return read_settings()


def read_settings(**given: str) -> Settings:
    """Read the environment, but for the variables that are given. Raises ConfigurationError likewise."""
    try:
        return Settings(**given)  # pyright: ignore[reportArgumentType]  # the rest: environment
    except (ValidationError, SettingsError) as error:
        raise ConfigurationError(_find_problems(error)) from None


def _find_problems(error: ValidationError | SettingsError) -> list[Problem]:
    """List what is wrong with the environment, one problem for each variable; values are not repeated."""
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
