import base64
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from kombu.connection import Connection
from redis.exceptions import RedisError

from orchestrator.adapters.dead_letters import DeadLetters
from orchestrator.adapters.redis.address import for_celery, tls_options
from orchestrator.adapters.redis.client import connect_blocking
from orchestrator.adapters.task_sender import producer_options
from orchestrator.errors import InvalidInput, NotFound, Unavailable
from orchestrator.settings.environment import read_variable
from orchestrator.types import JsonObject
from parley.commands.options import DEFAULT_DATA_DIR, AsJson, DataDir
from parley.embedded.redis import running_redis
from parley.output import Rows, print_json, print_result, say

app = typer.Typer(help="List, replay or drop refused messages.", no_args_is_help=True)

_LISTED = ("id", "at", "queue", "task", "code", "session_id", "tenant_id", "bytes")
_WITHIN_S = 5.0

Identifier = Annotated[str, typer.Argument(help="Dead letter ID.")]


@app.command("list")
def list_letters(as_json: AsJson = False, data_dir: DataDir = DEFAULT_DATA_DIR) -> None:
    """List dead letters, newest first, without their contents."""
    with _open(data_dir) as (_, letters):
        print_result(Rows([_shown(letter) for letter in letters.list()], _LISTED), as_json=as_json)


@app.command()
def replay(
    identifier: Annotated[str | None, typer.Argument(help="Dead letter ID.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Replay all dead letters, oldest first.")] = False,
    as_json: AsJson = False,
    data_dir: DataDir = DEFAULT_DATA_DIR,
) -> None:
    """Send dead letters back to their queues.

    Messages whose turns were accepted in the meantime have no further effect.
    """
    if (identifier is None) != everything:
        raise InvalidInput("Specify a dead letter ID or --all.", field="identifier")
    with _open(data_dir) as (redis_url, letters):
        chosen = [identifier] if identifier else [letter["id"] for letter in reversed(letters.list())]
        broker_url = read_variable("PARLEY_BROKER_URL") or redis_url
        options = producer_options(broker_url)
        tls: Any = tls_options(broker_url)  # kombu declares a bool, but also accepts options
        with Connection(for_celery(broker_url), transport_options=options, ssl=tls) as connection:
            for one in chosen:
                message = letters.message(one)
                if message is None:
                    raise NotFound("replayable dead letter", one)
                _publish(connection, message)
                letters.drop(one)
    _tell({"replayed": chosen}, f"{len(chosen)} replayed.", as_json=as_json)


@app.command()
def drop(identifier: Identifier, as_json: AsJson = False, data_dir: DataDir = DEFAULT_DATA_DIR) -> None:
    """Delete a dead letter."""
    with _open(data_dir) as (_, letters):
        if not letters.drop(identifier):
            raise NotFound("dead letter", identifier)
    _tell({"dropped": [identifier]}, "Dropped.", as_json=as_json)


def _tell(done: JsonObject, said: str, *, as_json: bool) -> None:
    if as_json:
        print_json(done)
    else:
        say(said)


@contextmanager
def _open(data_dir: Path) -> Iterator[tuple[str, DeadLetters]]:
    url = read_variable("REDIS_URL") or running_redis(data_dir.resolve())
    if url is None:
        raise Unavailable("Redis not found: set REDIS_URL, or start `parley up`.")
    try:
        with connect_blocking(url, timeout_s=_WITHIN_S) as client:
            yield url, DeadLetters(client)
    except (RedisError, OSError) as error:
        raise Unavailable(f"Redis or the broker is not responding: {error}") from error


def _publish(connection: Any, message: JsonObject) -> None:
    with connection.Producer() as producer:
        producer.publish(
            base64.b64decode(message["body"]),
            exchange="",
            routing_key=message["queue"],
            headers=message["headers"],
            content_type=message["content_type"],
            content_encoding=message["content_encoding"],
            correlation_id=message["correlation_id"],
            reply_to=message["reply_to"],
            delivery_mode=2,
        )


def _shown(letter: JsonObject) -> JsonObject:
    at = datetime.fromtimestamp(letter["at"], UTC).isoformat(timespec="seconds")
    return {**dict.fromkeys(_LISTED), **letter, "at": at}
