# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""Broker queues: Parley's own, and senders' queues for callbacks (RT-30)."""

from typing import Any, Final

from amqp.exceptions import NotFound  # pyright: ignore[reportMissingTypeStubs]
from kombu.entity import Exchange, Queue

from orchestrator.ports.tasks import QUEUES

QUORUM: Final = {"x-queue-type": "quorum"}
"""RabbitMQ's replicated queues. Limits and the dead-letter exchange are a policy: senders need not know them."""


class SharedQueue(Queue):
    """A queue that keeps its first declaration: RabbitMQ refuses a second, different one."""

    def queue_declare(self, nowait: bool = False, passive: bool = False, channel: Any = None) -> Any:
        """Declare the queue unless it exists already."""
        channel = channel or self.channel
        if not passive and _is_amqp(channel):
            with channel.connection.channel() as probe:  # a failed probe closes its channel
                try:
                    return probe.queue_declare(self.name, passive=True)
                except NotFound:
                    pass
        return super().queue_declare(nowait, passive, channel)


class ForeignQueue(SharedQueue):
    """A sender's own queue, published to directly. On Redis it is the list of that name, and nothing is declared."""

    def __init__(self, name: str = "", *arguments: Any, **options: Any) -> None:
        super().__init__(name, *arguments, **{"exchange": Exchange(""), "routing_key": name, **options})

    def declare(self, nowait: bool = False, channel: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Declare the queue if the broker requires it."""
        channel = channel or self.channel
        return super().declare(nowait, channel) if _is_amqp(channel) else self.name


TASK_QUEUES: Final[list[Queue]] = [
    SharedQueue(name, Exchange(name), routing_key=name, queue_arguments=QUORUM) for name in QUEUES
]
"""Declared identically by every process that sends or receives."""

DEAD_LETTERS: Final = SharedQueue(
    "parley.dead", Exchange("parley.dead", type="fanout"), queue_arguments=QUORUM
)
"""Messages that RabbitMQ itself gave up by its policy; workers move them to the list of dead letters."""


def _is_amqp(channel: Any) -> bool:
    return channel.connection.client.transport.driver_type == "amqp"
