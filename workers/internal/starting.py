"""Start background flows requested by a Celery message or by a turn's outbox entry."""

from dataclasses import replace

from internal_flows.start_request import read_start
from orchestrator.errors import ConfigurationError, InvalidInput
from orchestrator.ports.outbox import OutboxMessage
from orchestrator.telemetry import get_logger
from orchestrator.types import JsonObject, TurnId
from workers.internal.executor import RunExecutor
from workers.outbox import Deliver

_log = get_logger(__name__)


async def start_runs(
    executor: RunExecutor, arguments: JsonObject, key: str, *, turn_id: TurnId | None = None
) -> JsonObject:
    """Start a flow, or all flows of a trigger, once per `key`. Return a receipt with the run IDs.

    `turn_id`: the turn that requested the runs, or None. Raises InvalidInput, InputTooLarge,
    ConfigurationError or Unavailable.
    """
    runs = read_start(arguments, executor.catalogue)
    started = await executor.start(tuple(replace(run, turn_id=turn_id) for run in runs), key=key)
    run_ids = [*started.runs.values()]
    receipt: JsonObject = {
        "status": "joined" if started.joined else "started",
        "run_ids": run_ids,
        "runs": started.runs,
    }
    return {**receipt, "run_id": run_ids[0]} if len(run_ids) == 1 else receipt


def start_requested(executor: RunExecutor) -> Deliver:
    """Return an outbox delivery function that starts the background flows that turns request.

    The outbox keeps a message until its runs are stored. Invalid requests are logged and dropped.
    """

    async def deliver(message: OutboxMessage) -> None:
        arguments = {**message.payload, "session_id": message.session_id, "tenant_id": message.tenant_id}
        try:
            await start_runs(executor, arguments, f"outbox:{message.id}", turn_id=message.turn_id)
        except (InvalidInput, ConfigurationError) as error:
            _log.error("A turn requested a background flow that can't be started.", error=error)

    return deliver
