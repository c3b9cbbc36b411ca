"""Execute a flow's stages and return the outcome of an item or run (IF-5).

Workers and the tests' in-process runner share this code, so that directives behave the same in both. Other
modules schedule, store and rerun runs.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson
from pydantic import TypeAdapter, ValidationError

from internal_flows.directives import (
    NOT_GIVEN,
    BeforeAllResponse,
    DataResponse,
    Directive,
    NotGiven,
    RedoRun,
    Skip,
    Stage,
    recognize,
)
from internal_flows.stages import InternalFlow, RunContext
from orchestrator.errors import DirectiveError, ParleyError
from orchestrator.ports.runs.records import Progress
from orchestrator.ports.runs.status import ItemStatus, RedoStatus, RunStatus
from orchestrator.ports.runs.work import ItemEnd, RunEnd
from orchestrator.redaction import describe_error
from orchestrator.telemetry import get_logger
from orchestrator.types import Json, JsonObject

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Proceed:
    """The result of `before_all`: the run with its options and data, and the inputs of its items."""

    run: RunContext
    inputs: tuple[Json, ...]


class _Failure(Exception):
    def __init__(self, stage: Stage, message: str) -> None:
        super().__init__(describe_error(f"{stage}: {message}"))


async def run_before_all(flow: InternalFlow, run: RunContext, inputs: tuple[Json, ...]) -> Proceed | RunEnd:
    """Execute `before_all` and apply its overrides. Return the run's end after a skip, rerun or failure."""
    stage = Stage.BEFORE_ALL
    try:
        returned = await _call(stage, run, lambda: flow.before_all(run))
        match _directive(returned, stage):
            case Skip(reason):
                return RunEnd(RunStatus.SKIPPED, reason=reason)
            case RedoRun():
                return _redo(flow, run)
            case BeforeAllResponse(new_inputs, options, data):
                chosen = inputs if isinstance(new_inputs, NotGiven) else tuple(new_inputs)
                run = _with_options(run, options, stage, "before_all_response")
                return Proceed(replace(run, data=_plain(data, stage)), _plain_all(chosen, stage))
            case _:
                return Proceed(replace(run, data=_plain(returned, stage)), inputs)
    except _Failure as failure:
        return RunEnd(RunStatus.FAILED, error=str(failure))


async def run_item(flow: InternalFlow, run: RunContext, position: int, given: Json) -> ItemEnd:
    """Execute `data`, `work` and `output` for one input."""
    try:
        item = _typed(flow, given)
        returned = await _call(Stage.DATA, run, lambda: flow.data(run, item))
        data: Any = returned
        match _directive(returned, Stage.DATA):
            case Skip(reason):
                return ItemEnd(position, ItemStatus.SKIPPED, reason=reason)
            case DataResponse(new_input, options, new_data):
                item = item if new_input is NOT_GIVEN else _typed(flow, new_input)
                data = item if new_data is NOT_GIVEN else new_data
                run = _with_options(run, options, Stage.DATA, "data_response")
            case _:
                pass
        result = await _call(Stage.WORK, run, lambda: flow.work(run, item, data))
        _directive(result, Stage.WORK)
        returned = await _call(Stage.OUTPUT, run, lambda: flow.output(run, item, data, result))
        match _directive(returned, Stage.OUTPUT):
            case Skip(reason):
                return ItemEnd(position, ItemStatus.SKIPPED, reason=reason)
            case _:
                return ItemEnd(position, ItemStatus.DONE, output=_plain(returned, Stage.OUTPUT))
    except _Failure as failure:
        return ItemEnd(position, ItemStatus.FAILED, error=str(failure))


async def run_after_all(flow: InternalFlow, run: RunContext, outputs: list[Json]) -> RunEnd:
    stage = Stage.AFTER_ALL
    try:
        returned = await _call(stage, run, lambda: flow.after_all(run, outputs))
        match _directive(returned, stage):
            case RedoRun():
                return _redo(flow, run)
            case _:
                return RunEnd(RunStatus.DONE, closing=_plain(returned, stage))
    except _Failure as failure:
        return RunEnd(RunStatus.FAILED, error=str(failure))


async def _call(stage: Stage, run: RunContext, enter: Callable[[], Awaitable[Any]]) -> Any:
    """Execute a stage within its timeout. Raises `_Failure` for any exception."""
    deadline = asyncio.timeout(run.options.timeout_s)
    try:
        async with deadline:
            return await enter()
    except ParleyError as error:
        raise _Failure(stage, f"{error.code}: {error}") from error
    except Exception as error:
        if isinstance(error, TimeoutError) and deadline.expired():
            raise _Failure(stage, f"timed out after {run.options.timeout_s:g} s") from error
        _log.warning(
            "A stage of a background flow failed.", flow=run.flow, run=run.run_id, stage=stage, exc_info=error
        )
        raise _Failure(stage, f"{type(error).__name__}: {error}") from error


def _directive(returned: Any, stage: Stage) -> Directive | None:
    try:
        return recognize(returned, stage)
    except DirectiveError as error:
        raise _Failure(stage, str(error)) from error


def _with_options(
    run: RunContext, options: JsonObject | NotGiven, stage: Stage, directive: str
) -> RunContext:
    if isinstance(options, NotGiven):
        return run
    if stage is Stage.DATA and "concurrency" in options:
        where = "applies to a whole run: pass it to before_all_response() or to the flow"
        raise _Failure(stage, f"{directive}() was returned with the option 'concurrency', which {where}.")
    try:
        return replace(run, options=run.options.with_overrides(options))
    except ValueError as error:
        raise _Failure(
            stage, f"{directive}() was returned from {stage} with invalid options: {error}."
        ) from error


def _typed(flow: InternalFlow, given: Json) -> Any:
    if flow.input_type is Any:
        return given
    try:
        return TypeAdapter(flow.input_type).validate_python(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        where = f" at {place}" if place else ""
        raise _Failure(Stage.DATA, f"the input is invalid{where}: {first['msg']}") from error


def _plain(value: Any, stage: Stage) -> Json:
    """Return the value after a JSON round trip, so that all transports record the same value.

    Raises `_Failure` if the value is not JSON.
    """
    try:
        return orjson.loads(orjson.dumps(value))
    except TypeError as error:
        raise _Failure(stage, f"returned a value that is not JSON: {error}") from error


def _plain_all(values: tuple[Any, ...], stage: Stage) -> tuple[Json, ...]:
    return tuple(_plain(list(values), stage))


REDO_AFTER_S: Final = 0.5


def fail_items(items: Progress) -> RunEnd | None:
    """Return the end of a run with failed items, or None if all items succeeded.

    A run with failed items skips `after_all`.
    """
    if not items.failed:
        return None
    return RunEnd(RunStatus.FAILED, error=f"{items.failed} of {items.total} items failed")


def _redo(flow: InternalFlow, run: RunContext) -> RunEnd:
    """Return the end of a run that requests a rerun, which is scheduled unless the limit is reached.

    The configuration can change the flow's limit, or remove it with ``null``. Invalid values are ignored,
    because a mistake must not remove the limit.
    """
    ceiling = run.config.get("redo_ceiling", flow.redo_ceiling)
    if ceiling is not None and type(ceiling) is not int:
        ceiling = flow.redo_ceiling
    following = (run.redo_count or 0) + 1
    if ceiling is not None and following > ceiling:
        return RunEnd(
            RunStatus.DONE,
            redo=RedoStatus.CEILING_REACHED,
            reason=f"The run requested another rerun, but the limit is {ceiling}.",
        )
    return RunEnd(RunStatus.DONE, redo=RedoStatus.SCHEDULED, redo_count=following, redo_after_s=REDO_AFTER_S)
