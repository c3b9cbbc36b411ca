"""Route messages to Parley's queues, and to external queues as declared by their owners (RT-30)."""

from typing import Any

from celery.app.amqp import AMQP, Queues
from celery.exceptions import QueueNotFound
from kombu.entity import Queue

from orchestrator.adapters.broker_queues import ForeignQueue


class OpenQueues(Queues):
    """Parley's queues, and any other queue by name.

    Other queues are not cached, because their number is unlimited.
    """

    def __missing__(self, name: str) -> Queue:
        return ForeignQueue(name)

    def select(self, include: Any) -> None:
        """Consume from the queues `include`. Raises QueueNotFound if one of them is not a Parley queue."""
        for name in [include] if isinstance(include, str) else include or ():
            if name not in self:
                raise QueueNotFound(f"Queue {name!r} is not one of {', '.join(sorted(self))}.")
        super().select(include)


class OpenAMQP(AMQP):
    queues_cls = OpenQueues
