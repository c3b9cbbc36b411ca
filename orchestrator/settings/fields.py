"""Formats and units of settings, and the roles that use the settings."""

import ipaddress
import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator

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
    """The unit or format of a setting, if its type doesn't determine it."""

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
"""Treats an empty value as missing, because deployments provide unused secrets as empty files."""
Network = Annotated[str, AfterValidator(_check_network)]


@dataclass(frozen=True, slots=True)
class ReadBy:
    """The roles that use a setting. `parley serve` uses the same names."""

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
    """An additional model endpoint.

    Attributes:
        provider: a provider such as ``anthropic``, or ``compatible`` for an endpoint with the
            chat-completions API.
        base_url: the URL. Default: the provider's URL.
        responses: True to use the Responses API of a compatible endpoint.
        metadata: True to include session, turn and prompt IDs in requests.
        store: True if OpenAI may store requests.
        extra_body: members to add to every request of the ``openai`` client.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    provider: str = "compatible"
    base_url: WebAddress | None = Field(None, repr=False)
    api_key: SecretStr | None = None
    responses: bool = False
    metadata: bool = True
    store: bool = False
    extra_body: dict[str, Json] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _has_place(self) -> "ModelEndpoint":
        if self.provider == "compatible" and self.base_url is None:
            raise ValueError("requires a `base_url` or a known `provider`")
        return self
