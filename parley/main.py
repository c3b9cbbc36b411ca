"""The command ``parley``: names the commands and turns every error into one line."""

from __future__ import annotations

import logging
import os
import sys
import traceback

import typer
from typer.exceptions import TyperException

from orchestrator.errors import ParleyError
from orchestrator.redaction import hide_secrets
from orchestrator.settings.environment import environment_secrets
from orchestrator.telemetry.logs import set_up_logging
from parley.commands import (
    bench,
    chat,
    database,
    doctor,
    documents,
    domain,
    evaluate,
    health,
    keys,
    operate,
    redis_acl,
    runs,
    serve,
    sessions,
    soak,
    up,
    webhooks,
)
from parley.connection import close_clients
from parley.supervision import StopRequested

_INTERRUPTED = 130
WAIT_S = "30"

app = typer.Typer(
    help="A distributed runtime for task-oriented conversational agents.",
    epilog="Add --verbose to any command to see the whole traceback of an error.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("up")(up.up)
app.command("serve")(serve.serve)
app.command("health")(health.health)
app.command("chat")(chat.chat)
app.command("submit")(sessions.submit)
app.command("sessions")(sessions.list_sessions)
app.command("show")(sessions.show)
app.command("history")(sessions.history)
app.command("rollback")(sessions.rollback)
app.add_typer(operate.turns, name="turns")
app.add_typer(operate.approvals, name="approvals")
app.add_typer(runs.runs, name="runs")
app.add_typer(documents.documents, name="documents")
app.add_typer(webhooks.webhooks, name="webhooks")
app.add_typer(keys.keys, name="keys")
app.add_typer(domain.app, name="domain")
app.command("migrate")(database.migrate)
app.command("redis-acl")(redis_acl.redis_acl)
app.command("doctor")(doctor.doctor)
app.command("eval")(evaluate.eval_command)
app.command("soak")(soak.soak)
app.command("bench")(bench.bench)


def main() -> None:
    """Run the command line and end the process."""
    set_up_logging(logging.WARNING, environment_secrets())
    arguments, verbose = take_verbose(sys.argv[1:])
    sys.exit(run(arguments, verbose=verbose))


def run(arguments: list[str], *, verbose: bool = False) -> int:
    """Run one command; the exit code. Errors become one line on standard error."""
    try:
        return app(complete_wait(arguments), prog_name="parley", standalone_mode=False) or 0
    except (StopRequested, KeyboardInterrupt, typer.Abort):
        return _INTERRUPTED
    except TyperException as error:
        return _fail(error.format_message(), error.exit_code)
    except BrokenPipeError:
        # Whoever read our output has gone; what is still buffered must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001 - every error of a command is told, and ends with a code
        if verbose:
            print(hide_secrets(traceback.format_exc()), file=sys.stderr, end="")
            return 1
        if isinstance(error, ParleyError):
            return _fail(str(error), 1)
        return _fail(f"{type(error).__name__}: {error} (unexpected; --verbose shows where)", 1)
    finally:
        close_clients()


def take_verbose(arguments: list[str]) -> tuple[list[str], bool]:
    """``--verbose`` may stand anywhere before ``--``."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options, rest = arguments[:end], arguments[end:]
    kept = [word for word in options if word != "--verbose"]
    return kept + rest, len(kept) < len(options)


def complete_wait(arguments: list[str]) -> list[str]:
    """``--wait`` without a number means `WAIT_S` seconds."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    completed: list[str] = []
    for place, word in enumerate(arguments):
        completed.append(word)
        following = arguments[place + 1] if place + 1 < end else ""
        if word == "--wait" and place < end and not following[:1].isdigit():
            completed.append(WAIT_S)
    return completed


def _fail(message: str, code: int) -> int:
    line = hide_secrets("; ".join(" ".join(part.split()) for part in message.splitlines() if part.strip()))
    print(f"parley: {line}", file=sys.stderr)
    return code
