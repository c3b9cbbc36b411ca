"""Message destinations: our queues, and any other as its owner declared it (RT-30)."""

from typing import Any

from celery.app.amqp import AMQP, Queues
from celery.exceptions import QueueNotFound
from kombu.entity import Queue

from orchestrator.adapters.broker_queues import ForeignQueue


class OpenQueues(Queues):
    """Our queues, and any other by name; senders' queues are not cached, however many they name."""

    def __missing__(self, name: str) -> Queue:
        return ForeignQueue(name)

    def select(self, include: Any) -> None:
        """Consume from these queues. Raises QueueNotFound for a queue that is not ours."""
        for name in [include] if isinstance(include, str) else include or ():
            if name not in self:
                raise QueueNotFound(f"Queue {name!r} is not one of {', '.join(sorted(self))}.")
        super().select(include)


class OpenAMQP(AMQP):
    """Celery's messages, sent to our queues and to senders' own."""

    queues_cls = OpenQueues
