"""Background flow definitions: a class with a trigger, dependencies and five stages (IF-1, IF-2).

Public API for domains. Independent of how or where stages run.
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
    """Execution options.

    Args:
        model: the model that `work` can call, or None.
        concurrency: concurrent items.
        timeout_s: timeout of a stage, in seconds.
    """

    model: str | None = None
    concurrency: int = 4
    timeout_s: float = 60.0

    def with_overrides(self, given: Mapping[str, Json]) -> Options:
        """Return a copy with overrides. Raises ValueError naming an unknown or out-of-range option."""
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
    """Return a number without fraction as an integer, like JSON."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


@dataclass(frozen=True, slots=True)
class RunContext:
    """A run's facts for its stages, and its dependencies.

    Args:
        redo_count: None in a first run; 1, 2, … in its reruns.
        parameters: the trigger's parameters.
        config: the flow's configuration at the run's start.
        data: the result of `before_all`.
        material: the declared session content, by name, in `before_all`; None otherwise, and without a
            session.
        tools: the declared ports, by name.
        now: start of this stage or share of items in Unix seconds, stable in a replay.
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
    """A background flow with five optional stages; subclasses override those they need.

    Each stage can return the directives that `directives` permits. Recorded values (outputs, closing values,
    the result of `before_all`) must be JSON.
    """

    name: ClassVar[str] = ""
    trigger: ClassVar[str] = ""
    """Flows with the same trigger start together and form one graph."""
    depends_on: ClassVar[tuple[str, ...]] = ()
    tools: ClassVar[tuple[str, ...]] = ()
    material: ClassVar[tuple[str, ...]] = ()
    """Session content for its runs: ``conversation``, ``habits``, ``history`` (`ports.material`)."""
    input_type: ClassVar[Any] = Any
    """Inputs are validated as, and converted to, this type."""
    options: ClassVar[Options] = Options()
    on_failure: ClassVar[OnFailure] = OnFailure.BLOCK
    urgency: ClassVar[Urgency] = Urgency.HOUSEKEEPING
    redo_ceiling: ClassVar[int | None] = DEFAULT_REDO_CEILING
    """Maximum reruns per chain; None: unlimited. Configurable."""

    async def before_all(self, run: RunContext) -> Json | Directive:
        """Run once, first. Returns data for the later stages."""
        return None

    async def data(self, run: RunContext, item: Any) -> Json | Directive:
        """Run per input. Returns the argument `data` of `work`."""
        return item

    async def work(self, run: RunContext, item: Any, data: Any) -> Json:
        """Do the work of one input."""
        return data

    async def output(self, run: RunContext, item: Any, data: Any, result: Any) -> Json | Directive:
        """Run per input. Returns the recorded output."""
        return result

    async def after_all(self, run: RunContext, outputs: list[Json]) -> Json | Directive:
        """Run once, last. Returns the closing value. `outputs`: by input, None for skipped ones."""
        return outputs
