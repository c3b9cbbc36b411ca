"""The schema of a domain's tools.yaml (PX-8)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, NonNegativeInt, PositiveFloat, PositiveInt

from orchestrator.domain.schema import Entry, Name
from orchestrator.types import JsonObject

_TOOL_ID = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)+")


def _check_tool_id(value: str) -> str:
    if not _TOOL_ID.fullmatch(value):
        raise ValueError("is not a valid tool_id: use entity_verb, for example flight_search")
    return value


ToolName = Annotated[str, AfterValidator(_check_tool_id)]

Tag = Literal["accesses_private_data", "receives_untrusted_input", "communicates_externally"]


class HttpEntry(Entry):
    """An HTTP endpoint. ``{city}`` is an input, ``${API_KEY}`` an environment variable.

    ``{user_id}`` and ``{session_id}`` are the IDs of the call's user and session. ``{callback_url}`` is the
    URL for the result of a tool with `later`.

    In `query` and `body`, a value that is only one input keeps its type, and a value with a missing input is
    omitted. By default, remaining inputs go into the query for GET and DELETE, or into the body for other
    methods.

    Attributes:
        url: the URL, which can use inputs in its path.
        headers: headers, which can use inputs and variables.
        query: query parameters, which can use inputs and variables.
        wrap_as: the output name for a response that is not an object.
        errors: messages to the user by status, for calls that were certainly not executed. The messages
            can use inputs.
    """

    url: str = ""
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    headers: Mapping[str, str] = Field(default_factory=dict[str, str])
    query: Mapping[str, str] | None = None
    body: JsonObject | None = None
    wrap_as: str | None = None
    errors: Mapping[int, str] = Field(default_factory=dict[int, str])


class McpEntry(Entry):
    """A tool of an MCP server, which is reached by `url` or started by `command`.

    `headers`: headers for `url`, which can use environment variables. `environment`: names of the variables
    that are passed to the started server.
    """

    tool: str = ""
    url: str | None = None
    command: tuple[str, ...] = ()
    headers: Mapping[str, str] = Field(default_factory=dict[str, str])
    environment: tuple[str, ...] = ()


class FieldSpec(Entry):
    """Comparative words for a row field: `less` and `more`, such as “cheaper” and “more expensive”."""

    less: tuple[str, ...] = ()
    more: tuple[str, ...] = ()


class RowsSpec(Entry):
    """The rows in a tool's result that users can choose from (IR-5).

    Attributes:
        output: the output with the rows.
        key: the identifying field, which another flow accepts as a slot or input of that name.
        fields: the fields that users can refer to.
        most: maximum number of displayed rows.
    """

    output: str = ""
    key: str = ""
    fields: Mapping[Name, FieldSpec] = Field(default_factory=dict[str, FieldSpec])
    most: PositiveInt = 20

    @cached_property
    def cues(self) -> frozenset[str]:
        """Return the first words of row comparisons such as "cheaper" or "less expensive"."""
        said = (words for one in self.fields.values() for words in (*one.less, *one.more))
        return frozenset(words.partition(" ")[0] for words in said)


class LaterSpec(Entry):
    """Time limits of a tool that may accept a call and answer later (RT-32).

    `expires_s`: seconds until the user is asked what to do. `poll_s`: seconds between status queries, or None for
    a single query before the call expires.
    """

    expires_s: PositiveFloat = 86_400.0
    poll_s: PositiveFloat | None = None

    @property
    def first_look_s(self) -> float:
        return min(self.poll_s or self.expires_s, self.expires_s)


class ToolEntry(Entry):
    """A tool of the manifest (PX-8). Exactly one of `service`, `http` and `mcp` implements it."""

    name: str = ""
    description: str = ""
    service: str | None = None
    http: HttpEntry | None = None
    mcp: McpEntry | None = None
    input_schema: JsonObject = Field(default_factory=JsonObject)
    output_schema: JsonObject = Field(default_factory=JsonObject)
    idempotent: bool = False
    effect: bool | None = None
    confirm: bool = False
    timeout_ms: PositiveInt | None = None
    tags: tuple[Tag, ...] = ()
    trusted: str | None = None
    """Reason why a remote tool neither sends data out nor returns untrusted text.

    Default: the tool does both (PX-3).
    """
    requires_approval: bool = False
    approval: Literal["user", "operator"] | None = None
    approval_above: Mapping[Name, float] = Field(default_factory=dict[str, float])
    max_retries: NonNegativeInt | None = None
    rate_limit_rpm: PositiveInt | None = None
    cache_ttl_ms: NonNegativeInt = 0
    compensation: str | None = None
    status_query: str | None = None
    rows: RowsSpec | None = None
    later: LaterSpec | None = None


class ToolsFile(Entry):
    tools: Mapping[ToolName, ToolEntry] = Field(default_factory=dict[str, ToolEntry])
