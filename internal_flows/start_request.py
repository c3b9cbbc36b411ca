"""Parse requests to start background flows, received as Celery messages, over HTTP or from a turn."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import orjson
from pydantic import BaseModel as Model
from pydantic import ConfigDict, Field, JsonValue, ValidationError, model_validator

from internal_flows.catalogue import Catalogue
from orchestrator.errors import InputTooLarge, InvalidInput, NotFound
from orchestrator.ports.runs.records import NewRun
from orchestrator.turns.submission import Identifier
from orchestrator.types import DEFAULT_TENANT, SessionId, TenantId

MAX_INPUTS = 100_000
MAX_START_BYTES = 16 * 1024 * 1024
"""Maximum size of all arguments, in bytes of JSON."""


class StartRequest(Model):
    """A request to start either a flow or all flows of a trigger.

    `slot`: a key that limits each flow to one run at a time. Default: the session ID, if any. `after`: ID of
    a run that must end first.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    flow: Identifier | None = None
    trigger: Identifier | None = None
    session_id: Identifier | None = None
    tenant_id: Identifier = DEFAULT_TENANT
    inputs: Annotated[tuple[JsonValue, ...], Field(max_length=MAX_INPUTS)] = ()
    options: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    parameters: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    slot: Identifier | None = None
    after: Identifier | None = None

    @model_validator(mode="after")
    def _one_of_flow_and_trigger(self) -> StartRequest:
        if (self.flow is None) == (self.trigger is None):
            raise ValueError("requires either `flow` or `trigger`")
        if self.trigger is not None and (self.inputs or self.options):
            raise ValueError("`inputs` and `options` require `flow`")
        if self.trigger is not None and self.after is not None:
            raise ValueError("`after` requires `flow`")
        return self


def read_start(arguments: dict[str, Any], catalogue: Catalogue) -> tuple[NewRun, ...]:
    """Return the runs to start. Raises InvalidInput, InputTooLarge or ConfigurationError."""
    _require_bounded(arguments)
    try:
        request = StartRequest.model_validate(arguments)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "flow"
        raise InvalidInput(f"{field}: {first['msg'].removeprefix('Value error, ')}", field=field) from error
    session_id = None if request.session_id is None else SessionId(request.session_id)
    tenant_id = TenantId(request.tenant_id)
    whole: dict[str, Any] = {
        "parameters": request.parameters,
        "tenant_id": tenant_id,
        "session_id": session_id,
        "flight": request.slot or session_id,
    }
    try:
        if request.trigger is not None:
            return catalogue.new_graph(request.trigger, **whole)
        assert request.flow is not None
        run = catalogue.new_run(request.flow, inputs=request.inputs, options=request.options, **whole)
    except NotFound as error:
        field, known = ("flow", catalogue.flows) if request.trigger is None else ("trigger", catalogue.graphs)
        raise InvalidInput(
            f"{str(error).removesuffix('.')}; available: {', '.join(sorted(known))}.", field=field
        ) from error
    return (replace(run, after=request.after),)


def _require_bounded(arguments: dict[str, Any]) -> None:
    """Raise InputTooLarge if the arguments are too large, too deeply nested, or not JSON."""
    try:
        size = len(orjson.dumps(arguments))
    except orjson.JSONEncodeError as error:
        raise InputTooLarge(
            "The arguments are nested too deeply, or are not JSON.", field="inputs"
        ) from error
    if size > MAX_START_BYTES:
        raise InputTooLarge(f"The arguments must be at most {MAX_START_BYTES} bytes.", field="inputs")
