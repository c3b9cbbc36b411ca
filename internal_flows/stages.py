"""The public API for defining background flows (IF-1, IF-2).

A flow is a class with a trigger, dependencies and five stages, independent of where the stages run.
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
        model: the model that `work` can call. Default: the domain's model.
        concurrency: maximum number of concurrent items.
        timeout_s: timeout of each stage, in seconds.
    """

    model: str | None = None
    concurrency: int = 4
    timeout_s: float = 60.0

    def with_overrides(self, given: Mapping[str, Json]) -> Options:
        """Return a copy with overrides. Raises ValueError if an option is unknown or its value is invalid."""
        known = {known.name for known in fields(self)}
        unknown = sorted(set(given) - known)
        if unknown:
            raise ValueError(f"unknown option {unknown[0]!r}; choose from {', '.join(sorted(known))}")
        changed = replace(self, **{name: _whole(value) for name, value in given.items()})
        if changed.model is not None and not isinstance(changed.model, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # it came as JSON
            raise ValueError("the option 'model' must be a string")
        if type(changed.concurrency) is not int or changed.concurrency < 1:
            raise ValueError("the option 'concurrency' must be an integer of at least 1")
        if type(changed.timeout_s) not in {int, float} or not 0 < changed.timeout_s <= 3600:
            raise ValueError("the option 'timeout_s' must be a number of seconds up to 3600")
        return changed

    def to_json(self) -> JsonObject:
        return {"model": self.model, "concurrency": self.concurrency, "timeout_s": self.timeout_s}


def _whole(value: Json) -> Any:
    """Return a float without a fraction as an integer, because JSON does not distinguish the two."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


@dataclass(frozen=True, slots=True)
class RunContext:
    """A run's parameters, tools and session content, passed to its stages.

    Args:
        redo_count: number of this rerun, starting at 1, or None in the first run.
        parameters: the trigger's parameters.
        config: the flow's configuration when the run started.
        data: the result of `before_all`.
        material: the declared session content, by name. Values are None outside `before_all` and without a
            session.
        tools: the declared tools, by name.
        now: start of this phase or share of items, in Unix seconds.
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
    """The base class of background flows. Subclasses override the stages that they need.

    Each stage can return the directives listed in `directives.STAGES`. The results of `before_all`, `output`
    and `after_all` are recorded and must be JSON.
    """

    name: ClassVar[str] = ""
    trigger: ClassVar[str] = ""
    """The trigger that starts this flow. Flows with the same trigger form one graph."""
    depends_on: ClassVar[tuple[str, ...]] = ()
    tools: ClassVar[tuple[str, ...]] = ()
    material: ClassVar[tuple[str, ...]] = ()
    """Required session content: ``conversation``, ``habits`` or ``history`` (see `orchestrator.ports.material`)."""
    input_type: ClassVar[Any] = Any
    """The type that validates and converts each input."""
    options: ClassVar[Options] = Options()
    on_failure: ClassVar[OnFailure] = OnFailure.BLOCK
    urgency: ClassVar[Urgency] = Urgency.BACKGROUND
    redo_ceiling: ClassVar[int | None] = DEFAULT_REDO_CEILING
    """Maximum number of consecutive reruns, or None for no limit.

    The configuration can override this limit.
    """

    async def before_all(self, run: RunContext) -> Json | Directive:
        """Run once before all items. The returned value becomes `run.data` in later stages."""
        return None

    async def data(self, run: RunContext, item: Any) -> Json | Directive:
        """Run first for each input, and return the argument `data` of `work`."""
        return item

    async def work(self, run: RunContext, item: Any, data: Any) -> Json:
        """Process one input, and return the argument `result` of `output`."""
        return data

    async def output(self, run: RunContext, item: Any, data: Any, result: Any) -> Json | Directive:
        """Run last for each input, and return the output to record."""
        return result

    async def after_all(self, run: RunContext, outputs: list[Json]) -> Json | Directive:
        """Run once after all items, unless an item failed, and return the closing value.

        `outputs`: the items' outputs in input order, with None for skipped items.
        """
        return outputs
