"""The Celery application: queues, routes and settings, and the life of a worker's process."""

from typing import Any

from celery import Celery, signals

from orchestrator.adapters.redis.address import for_celery, is_socket, sentinel_options
from orchestrator.adapters.task_sender import CONNECT_TIMEOUT_S, TASK_QUEUES, is_redis, transport_options
from orchestrator.bootstrap import BuildAgent
from orchestrator.ports.tasks import ROUTES, TURNS
from orchestrator.settings import Settings, known_secrets, load_settings
from orchestrator.telemetry.logs import set_up_logging
from workers.internal.catalogue import MakeCatalogue, make_catalogue
from workers.internal.schedule import scheduler_of
from workers.messages.envelopes import judge_envelopes
from workers.messages.unacknowledged import book_options, name_consumer
from workers.tasks import register_tasks
from workers.worker_lifecycle import WorkerLifecycle

BROKER_REPLY_TIMEOUT_S = 5
BROKER_HEARTBEAT_S = 20
"""Between RabbitMQ and us; Redis knows no heartbeats."""
RESULT_EXPIRES_S = 600


def create_app(settings: Settings, build: BuildAgent, flows: MakeCatalogue = make_catalogue) -> Celery:
    """An application whose workers run turns with the agents that `build` makes, and Internal `flows`."""
    broker_url = settings.broker_url or settings.redis_url
    judge_envelopes()
    app = Celery("parley", broker=for_celery(broker_url), backend=for_celery(settings.redis_url))
    app.conf.update(_configuration(settings, broker_url))
    app.conf.beat_scheduler = scheduler_of(settings, flows)
    consumer = name_consumer() if is_redis(broker_url) else None
    if consumer is not None:
        app.conf.broker_transport_options |= book_options(consumer)
    worker = WorkerLifecycle(app, settings, build, flows, consumer)
    register_tasks(app, worker)
    _follow_celery(worker, known_secrets(settings))
    return app


def _configuration(settings: Settings, broker_url: str) -> dict[str, Any]:
    """Configure what differs from Celery's defaults. Secrets never stand here."""
    return {
        # Never pickle on the wire (RT-22).
        "task_serializer": "json",
        "result_serializer": "json",
        "event_serializer": "json",
        "accept_content": ["json"],
        "result_accept_content": ["json"],
        "task_queues": TASK_QUEUES,
        "task_default_queue": TURNS,
        "task_create_missing_queues": False,
        "task_routes": ROUTES,
        "task_ignore_result": True,
        # A message of a sender outside is acknowledged once the store has what it says, so that none is lost
        # with a worker; nothing is taken ahead that another worker could take.
        "task_acks_late": True,
        "worker_prefetch_multiplier": 1,
        # A task hands its work to the process's event loop and waits: threads do, processes would each need a loop.
        "worker_pool": "threads",
        "worker_consumer": "workers.messages.redaction:RedactingConsumer",
        "worker_concurrency": 64,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "worker_enable_remote_control": settings.remote_control,
        # What runs is safe in the database, and goes on while the broker is away.
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "broker_connection_timeout": CONNECT_TIMEOUT_S,
        "broker_heartbeat": BROKER_HEARTBEAT_S,
        "broker_transport_options": transport_options(broker_url, BROKER_REPLY_TIMEOUT_S),
        "result_backend_transport_options": sentinel_options(settings.redis_url),
        "result_expires": RESULT_EXPIRES_S,
        "result_extended": False,
        "redis_socket_timeout": 5,
        "redis_socket_connect_timeout": 2,
        "redis_socket_keepalive": not is_socket(settings.redis_url),
        "redis_backend_health_check_interval": 5,
    }


def _follow_celery(worker: WorkerLifecycle, secrets: frozenset[str]) -> None:
    """Tie the life of the worker to the signals of Celery in this process."""

    def on_logging(loglevel: int | str = "INFO", **_: Any) -> None:
        set_up_logging(loglevel, secrets)

    def on_init(**_: Any) -> None:
        worker.prepare()

    def on_ready(sender: Any = None, **_: Any) -> None:
        worker.open(sender)

    def on_child(**_: Any) -> None:
        worker.open(None)

    def on_stopping(**_: Any) -> None:
        worker.stop_taking()

    def on_stopped(**_: Any) -> None:
        worker.close()

    signals.setup_logging.connect(on_logging, weak=False)
    signals.worker_init.connect(on_init, weak=False)
    signals.worker_ready.connect(on_ready, weak=False)
    signals.worker_process_init.connect(on_child, weak=False)
    signals.worker_shutting_down.connect(on_stopping, weak=False)
    signals.worker_shutdown.connect(on_stopped, weak=False)
    signals.worker_process_shutdown.connect(on_stopped, weak=False)


def __getattr__(name: str) -> Celery:
    """The application of the environment, made when `celery -A workers.app` asks for it."""
    if name != "app":
        raise AttributeError(name)
    from orchestrator.bootstrap import build_agent  # noqa: PLC0415

    app = create_app(load_settings(), build_agent)
    globals()["app"] = app
    return app
