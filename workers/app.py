from collections.abc import Callable
from typing import Any

from celery import Celery, signals

from orchestrator.adapters.broker_queues import TASK_QUEUES
from orchestrator.adapters.redis.address import for_celery, is_socket, sentinel_options, tls_options
from orchestrator.adapters.task_sender import CONNECT_TIMEOUT_S, is_redis, transport_options
from orchestrator.bootstrap import BuildAgent
from orchestrator.ports.tasks import ROUTES, SENDERS_QUEUE
from orchestrator.settings import Settings, known_secrets, load_settings
from orchestrator.telemetry.logs import set_up_logging
from workers.internal.catalogue import MakeCatalogue, make_catalogue
from workers.internal.schedule import SCHEDULES, ScheduleThread, scheduler_of
from workers.messages.broker_dead_letters import BrokerDeadLetters
from workers.messages.envelopes import validate_envelopes
from workers.messages.results import SETTINGS as RESULT_SETTINGS
from workers.messages.results import use_result_backend
from workers.messages.revocations import revocation_step
from workers.messages.routing import OpenAMQP
from workers.messages.unacknowledged import book_options, name_consumer
from workers.tasks import register_tasks
from workers.worker_lifecycle import WorkerLifecycle

BROKER_REPLY_TIMEOUT_S = 5
BROKER_HEARTBEAT_S = 20
"""Heartbeat interval of RabbitMQ connections, in seconds."""
RESULT_EXPIRES_S = 600


def create_app(settings: Settings, build: BuildAgent, flows: MakeCatalogue = make_catalogue) -> Celery:
    """Create the Celery application.

    Its workers build agents with `build` and create the catalog of background flows with `flows`.
    """
    broker_url = settings.broker_url or settings.redis_url
    validate_envelopes()
    app = Celery(
        "parley", broker=for_celery(broker_url), backend=for_celery(settings.redis_url), amqp=OpenAMQP
    )
    app.conf.update(_configuration(settings, broker_url))
    use_result_backend(app)
    app.conf.beat_scheduler = scheduler_of(settings, flows)
    consumer = name_consumer() if is_redis(broker_url) else None
    if consumer is not None:
        app.conf.broker_transport_options |= book_options(consumer)
    worker = WorkerLifecycle(app, settings, build, flows, consumer)
    register_tasks(app, worker)
    steps: Any = app.steps
    steps["worker"].add(ScheduleThread)
    options: Any = app.user_options
    options["worker"].add(SCHEDULES)
    steps["consumer"].add(revocation_step(worker.revoke))
    steps["consumer"].add(BrokerDeadLetters)
    _follow_celery(worker, known_secrets(settings))
    return app


def _configuration(settings: Settings, broker_url: str) -> dict[str, Any]:
    return {
        # Exchange only JSON, never pickle (RT-22).
        "task_serializer": "json",
        "result_serializer": "json",
        "event_serializer": "json",
        "accept_content": ["json"],
        "result_accept_content": ["json"],
        "task_queues": TASK_QUEUES,
        # For callbacks without a queue name.
        "task_default_queue": SENDERS_QUEUE,
        "task_routes": ROUTES,
        "task_ignore_result": True,
        # Acknowledge an external sender's message only after storing its content, so that a crash loses no
        # message.
        "task_acks_late": True,
        # Don't prefetch messages that another worker could process. RabbitMQ counts messages with a countdown
        # as prefetched, so the limit is higher there.
        "worker_prefetch_multiplier": 1 if is_redis(broker_url) else 16,
        # Tasks submit work to the process's event loop and wait, so threads suffice. Child processes would
        # each need an event loop.
        "worker_pool": "threads",
        "worker_consumer": "workers.messages.redaction:RedactingConsumer",
        "worker_concurrency": 64,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "worker_enable_remote_control": settings.remote_control,
        # Running work is stored in the database and continues while the broker is unavailable.
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "broker_connection_timeout": CONNECT_TIMEOUT_S,
        "broker_heartbeat": BROKER_HEARTBEAT_S,
        # During a short broker outage, retry sending callbacks instead of failing the task.
        "task_publish_retry_policy": {
            "max_retries": 30,
            "interval_start": 0,
            "interval_step": 0.2,
            "interval_max": 1,
        },
        "broker_transport_options": transport_options(broker_url, BROKER_REPLY_TIMEOUT_S),
        "result_backend_transport_options": sentinel_options(settings.redis_url),
        "broker_use_ssl": tls_options(broker_url) or None,
        "redis_backend_use_ssl": tls_options(settings.redis_url) or None,
        "result_expires": RESULT_EXPIRES_S,
        **RESULT_SETTINGS,
        "result_extended": False,
        "redis_socket_timeout": 5,
        "redis_socket_connect_timeout": 2,
        "redis_socket_keepalive": not is_socket(settings.redis_url),
        "redis_backend_health_check_interval": 5,
    }


def _follow_celery(worker: WorkerLifecycle, secrets: frozenset[str]) -> None:
    """Connect logging and the worker's lifecycle to Celery's signals. `secrets`: strings to hide in logs."""

    def on_logging(loglevel: int | str = "INFO", **_: Any) -> None:
        set_up_logging(loglevel, secrets)

    steps: tuple[tuple[Any, Callable[..., None]], ...] = (
        (signals.setup_logging, on_logging),
        (signals.worker_init, lambda **_: worker.prepare()),
        (signals.worker_ready, lambda sender=None, **_: worker.open(sender)),
        (signals.worker_shutting_down, lambda **_: worker.stop_taking()),
        (signals.worker_shutdown, lambda **_: worker.close()),
    )
    for signal, step in steps:
        signal.connect(step, weak=False)


def __getattr__(name: str) -> Celery:
    """Create the application on first access, for `celery -A workers.app`."""
    if name != "app":
        raise AttributeError(name)
    from orchestrator.bootstrap import build_agent  # noqa: PLC0415

    app = create_app(load_settings(), build_agent)
    globals()["app"] = app
    return app
