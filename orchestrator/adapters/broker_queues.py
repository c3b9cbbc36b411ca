# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""Parley's broker queues, and the senders' queues that receive callbacks (RT-30)."""

from typing import Any, Final

from amqp.exceptions import NotFound  # pyright: ignore[reportMissingTypeStubs]
from kombu.entity import Exchange, Queue

from orchestrator.ports.tasks import QUEUES

QUORUM: Final = {"x-queue-type": "quorum"}
"""Arguments for a replicated RabbitMQ queue.

A RabbitMQ policy sets the limits and the dead-letter exchange, so senders can declare queues without them.
"""


class SharedQueue(Queue):
    """A queue that is declared on RabbitMQ only if it doesn't exist.

    RabbitMQ rejects a second declaration that has different arguments.
    """

    def queue_declare(self, nowait: bool = False, passive: bool = False, channel: Any = None) -> Any:
        channel = channel or self.channel
        if not passive and _is_amqp(channel):
            with channel.connection.channel() as probe:  # a failed probe closes its channel
                try:
                    return probe.queue_declare(self.name, passive=True)
                except NotFound:
                    pass
        return super().queue_declare(nowait, passive, channel)


class ForeignQueue(SharedQueue):
    """Another application's queue, reached through the default exchange.

    On Redis, the queue is a list, which needs no declaration.
    """

    def __init__(self, name: str = "", *arguments: Any, **options: Any) -> None:
        super().__init__(name, *arguments, **{"exchange": Exchange(""), "routing_key": name, **options})

    def declare(self, nowait: bool = False, channel: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        channel = channel or self.channel
        return super().declare(nowait, channel) if _is_amqp(channel) else self.name


TASK_QUEUES: Final[list[Queue]] = [
    SharedQueue(name, Exchange(name), routing_key=name, queue_arguments=QUORUM) for name in QUEUES
]
"""The queues that all sending and receiving processes declare identically."""

DEAD_LETTERS: Final = SharedQueue(
    "parley.dead", Exchange("parley.dead", type="fanout"), queue_arguments=QUORUM
)
"""The queue for messages that RabbitMQ dead-letters by policy. Workers move them to `DeadLetters`."""


def _is_amqp(channel: Any) -> bool:
    return channel.connection.client.transport.driver_type == "amqp"
