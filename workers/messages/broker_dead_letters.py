"""Move RabbitMQ's dead letters to Parley's dead-letter list (RT-30)."""

from typing import Any, ClassVar, Final

from celery import bootsteps
from celery.worker.consumer.tasks import Tasks
from kombu.messaging import Consumer

from orchestrator.adapters.broker_queues import DEAD_LETTERS
from orchestrator.ports.tasks import QUEUES, SUBMISSIONS
from workers.messages.redaction import name_or_none
from workers.messages.refused import keep_dead_letter

TAKEN_AT_ONCE: Final = 10


class BrokerDeadLetters(bootsteps.ConsumerStep):
    """A consumer of RabbitMQ's dead-letter queue, for workers that accept submissions."""

    requires: ClassVar = (Tasks,)

    def include_if(self, parent: Any) -> bool:
        is_amqp = parent.app.connection_for_read().transport.driver_type == "amqp"
        return is_amqp and SUBMISSIONS in parent.app.amqp.queues.consume_from

    def get_consumers(self, channel: Any) -> list[Consumer]:
        """Declare the exchange and its queue, and consume messages without decoding their bodies."""
        channel.basic_qos(0, TAKEN_AT_ONCE, False)
        return [Consumer(channel, queues=[DEAD_LETTERS], on_message=_keep)]


def _keep(message: Any) -> None:
    """Store a message. If Redis is unavailable, RabbitMQ redelivers the message on the next connection."""
    headers: dict[str, Any] = message.headers or {}
    queue, reason = headers.get("x-first-death-queue"), headers.get("x-first-death-reason")
    facts = {
        "queue": queue if queue in QUEUES else SUBMISSIONS,
        "task": name_or_none(headers.get("task")),
    }
    if keep_dead_letter(message, name_or_none(reason) or "dead_letter", **facts):
        message.ack()
