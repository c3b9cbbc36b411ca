"""The links of a Celery chain that a worker carries out itself when it has ended the one before (IF-9)."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from orchestrator.ports.tasks import ADVANCE_RUN
from workers.messages.flower_events import ShownTask


@dataclass(frozen=True, slots=True)
class Link:
    """A run that has something to do now.

    `then`: runs for which a message comes as soon as this one is over, as the next link of a chain or a chord's body.
    `task`: as what Flower shows it, where no message of its own has come.
    """

    run_id: str
    flow: str
    then: tuple[str, ...] = ()
    task: ShownTask | None = None


class _Arguments(BaseModel):
    run_id: str
    flow: str
    then: tuple[str, ...] = ()


class _Options(BaseModel):
    task_id: str
    shadow: str
    queue: str


class _Signature(BaseModel):
    """A message about a run that has not been sent."""

    task: str
    kwargs: _Arguments
    options: _Options


def links_after(request: Any) -> Generator[Link]:
    """The links after a task, as far as each is a single run for the same queue, in their order.

    `request`: Celery's, whose `chain` begins with the last link. Fan-outs are sent, so that others take part.
    """
    before = request.id
    for one in reversed(request.chain or ()):
        try:
            signature = _Signature.model_validate(one)
        except ValidationError:  # of another form, as a fan-out is
            return
        told, options = signature.kwargs, signature.options
        if (signature.task, options.queue) != (ADVANCE_RUN, request.delivery_info["routing_key"]):
            return
        task = ShownTask(options.task_id, options.shadow, request.root_id, before)
        yield Link(told.run_id, told.flow, told.then, task)
        before = options.task_id
