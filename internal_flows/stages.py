"""Define an Internal flow: a class with a trigger, its dependencies and five stages (IF-1, IF-2).

Public to domains. Nothing here knows how or where the stages are run.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Final

from internal_flows.directives import Directive, Stage, before_all_response, data_response, redo_run, skip
from orchestrator.ports.runs.status import OnFailure, Urgency
from orchestrator.types import Json, JsonObject, SessionId, TenantId

__all__ = [
    "InternalFlow",
    "OnFailure",
    "Options",
    "RunContext",
    "Stage",
    "Urgency",
    "before_all_response",
    "data_response",
    "redo_run",
    "skip",
]

DEFAULT_REDO_CEILING: Final = 16


@dataclass(frozen=True, slots=True)
class Options:
    """How a run is carried out.

    Args:
        model: name of the model that `work` may call; None: none.
        concurrency: items at work at once.
        timeout_s: seconds for one call of a stage.
    """

    model: str | None = None
    concurrency: int = 4
    timeout_s: float = 60.0

    def with_overrides(self, given: Mapping[str, Json]) -> Options:
        """Some of them changed. Raises ValueError naming an option that is unknown or out of range."""
        known = {known.name for known in fields(self)}
        unknown = sorted(set(given) - known)
        if unknown:
            raise ValueError(f"there is no option {unknown[0]!r}; known are {', '.join(sorted(known))}")
        changed = replace(self, **{name: _whole(value) for name, value in given.items()})
        if changed.model is not None and not isinstance(changed.model, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # it came as JSON
            raise ValueError("the option 'model' must be a text")
        if type(changed.concurrency) is not int or changed.concurrency < 1:
            raise ValueError("the option 'concurrency' must be a whole number from 1")
        if type(changed.timeout_s) not in {int, float} or not 0 < changed.timeout_s <= 3600:
            raise ValueError("the option 'timeout_s' must be a number of seconds up to 3600")
        return changed

    def to_json(self) -> JsonObject:
        return {"model": self.model, "concurrency": self.concurrency, "timeout_s": self.timeout_s}


def _whole(value: Json) -> Any:
    """A number without a fraction as the integer that JSON takes it for."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


@dataclass(frozen=True, slots=True)
class RunContext:
    """The facts of one run for its stages, and all that they may use.

    Args:
        redo_count: None in a first run; 1, 2, … in reruns of its chain.
        parameters: what the trigger said.
        config: the flow's configuration, as it was when this run began.
        data: what `before_all` left for the later stages.
        material: what the flow declared, by name, in `before_all`; None elsewhere, and without a session.
        tools: the ports that the flow declared, by name.
        now: when this stage, or this share of the items, began, in unix seconds: the same in a replay.
    """

    run_id: str
    flow: str
    tenant_id: TenantId
    session_id: SessionId | None = None
    redo_count: int | None = None
    parameters: JsonObject = field(default_factory=dict[str, Json])
    config: JsonObject = field(default_factory=dict[str, Json])
    options: Options = Options()
    data: Json = None
    tools: Mapping[str, Any] = field(default_factory=dict[str, Any])
    material: Mapping[str, Any] = field(default_factory=dict[str, Any])
    now: float = field(default_factory=time.time)


class InternalFlow:
    """Housekeeping in five optional stages; a subclass overrides those it needs.

    Each stage may return a directive where `directives` allows it. Values that are recorded
    (outputs, closing values, what `before_all` leaves) must be JSON.
    """

    name: ClassVar[str] = ""
    trigger: ClassVar[str] = ""
    """Flows of one trigger start together and form one graph."""
    depends_on: ClassVar[tuple[str, ...]] = ()
    tools: ClassVar[tuple[str, ...]] = ()
    material: ClassVar[tuple[str, ...]] = ()
    """What its runs are given of their session: ``conversation``, ``habits``, ``history`` (`ports.material`)."""
    input_type: ClassVar[Any] = Any
    """Inputs are validated as this type, and passed on in it."""
    options: ClassVar[Options] = Options()
    on_failure: ClassVar[OnFailure] = OnFailure.BLOCK
    urgency: ClassVar[Urgency] = Urgency.HOUSEKEEPING
    redo_ceiling: ClassVar[int | None] = DEFAULT_REDO_CEILING
    """Reruns of one chain; None: no ceiling. Configuration may change it."""
    recorded: ClassVar[bool | None] = None
    """Whether calls and results are kept for replays; None: where the run has a session, with which they go."""

    async def before_all(self, run: RunContext) -> Json | Directive:
        """Once, first: data for the later stages."""
        return None

    async def data(self, run: RunContext, item: Any) -> Json | Directive:
        """Per input: what `work` gets."""
        return item

    async def work(self, run: RunContext, item: Any, data: Any) -> Json:
        """Per input: the work itself."""
        return data

    async def output(self, run: RunContext, item: Any, data: Any, result: Any) -> Json | Directive:
        """Per input: what is recorded."""
        return result

    async def after_all(self, run: RunContext, outputs: list[Json]) -> Json | Directive:
        """Once, last: the closing value. `outputs` by input, None for those that were skipped."""
        return outputs
