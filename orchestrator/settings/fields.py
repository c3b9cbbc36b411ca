"""The forms and units of settings, and the roles that they mean something to."""

import ipaddress
import re
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

from orchestrator.types import Json


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
    """The unit of a value, or how it is written, where its type does not say."""

    name: str


DatabaseAddress = Annotated[str, _begins_with("postgresql"), Form("address")]
WebAddress = Annotated[str, _begins_with("http", "https"), Form("address")]
RedisAddress = Annotated[
    str,
    _begins_with("redis", "rediss", "redis+sentinel", "unix"),
    AfterValidator(_check_sentinels),
    Form("address"),
]
BrokerAddress = Annotated[
    str,
    _begins_with("redis", "rediss", "redis+sentinel", "unix", "amqp", "amqps"),
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
LISTENING = ReadBy(("gateway", "turns", "internal", "flower"))
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
