"""The ``parley`` command, which imports only the called subcommand and prints errors on one line."""

import os
import sys
import traceback
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException
from typer.main import get_group

from orchestrator.errors import ParleyError, Unavailable
from orchestrator.extras import explain_missing
from orchestrator.redaction import hide_secrets
from parley.signals import StopRequested

_INTERRUPTED = 130
WAIT_S = "30"

GROUPS: Final = {
    "Start": {
        "up": (".up", "Run everything on this machine until Ctrl-C."),
        "chat": (".chat", "Chat with an assistant."),
        "doctor": (".doctor", "Check the environment and a running deployment."),
    },
    "Build": {
        "domain": (".domain", "Create, check and train domains."),
        "explain": ("lab.commands.explain", "Explain how Parley interprets a message."),
        "eval": ("lab.commands.evaluate", "Evaluate a domain on test conversations."),
        "feedback": ("lab.commands.feedback", "List user feedback, or turn it into test cases."),
    },
    "Sessions": {
        "submit": (".gateway.sessions", "Submit a message to a session."),
        "sessions": (".gateway.sessions", "List sessions, most recently active first."),
        "show": (".gateway.sessions", "Show a session's state and flow stack."),
        "history": (".gateway.sessions", "Print a session's messages, oldest first."),
        "rollback": (".gateway.sessions", "Roll a session back to an earlier version."),
        "branch": (".gateway.sessions", "Fork a session at its current version or an earlier one."),
        "compare": (".gateway.sessions", "Compare two forks of a session."),
        "repair": (".gateway.repair", "Diagnose and repair a session."),
    },
    "Operate": {
        "turns": (".gateway.turns", "List, retry, drop or cancel turns."),
        "approvals": (".gateway.turns", "List, grant or deny pending approvals."),
        "runs": (".gateway.runs", "Manage background runs."),
        "documents": (".gateway.documents", "Manage the documents that Parley uses for answers."),
        "memory": (".gateway.memory", "Show or erase a user's preferences."),
        "webhooks": (".gateway.webhooks", "Manage webhooks."),
        "dead-letters": (".dead_letters", "List, replay or drop refused messages."),
        "keys": (".keys", "Manage API keys."),
    },
    "Deploy": {
        "serve": (".serve", "Run one role until SIGTERM."),
        "health": (".serve", "Check the health of a role in this container."),
        "migrate": (".stores", "Apply database migrations."),
        "redis-acl": (".stores", "Print a Redis ACL file."),
    },
    "Measure": {
        "replay": ("lab.commands.replay", "Replay finished turns against a new version."),
        "soak": ("lab.commands.soak", "Run a soak test with injected faults."),
        "bench": ("lab.commands.bench", "Run a benchmark."),
    },
}
"""Commands by group and name, each with its module and summary. ``parley --help`` imports none of the modules.

A leading dot stands for `parley.commands`.
"""

COMMANDS: Final = {name: entry for group in GROUPS.values() for name, entry in group.items()}


def load_command(name: str) -> Any:
    """Return the command `name` from its module's `app`, or the whole `app` as a group if it has no such command.

    Raises Unavailable if the command belongs to `lab`, which the server image lacks.
    """
    module, _ = COMMANDS[name]
    try:
        loaded = import_module(module, "parley.commands")
    except ModuleNotFoundError as error:
        if error.name != "lab":
            raise
        raise Unavailable(
            f"`parley {name}` is not part of the server image. Run it where parley-runtime is installed."
        ) from error
    group = get_group(loaded.app)
    group.name = name
    return group.commands.get(name, group)


class _LazyGroup(TyperGroup):
    """A command group that lists its commands in sections and imports only the called command."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        del ctx
        width = max(map(len, COMMANDS))
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), summary) for name, (_, summary) in group.items()])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and load_command(str(name)), rest


app = typer.Typer(
    cls=_LazyGroup,
    help="A distributed runtime for task-oriented conversational agents.",
    epilog="Add --verbose to any command to see the traceback of an error.",
    no_args_is_help=True,
    rich_markup_mode=None,  # rich is slow to import
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415  # slow to import

        print(f"parley {version('parley-runtime')}")
        raise typer.Exit


@app.callback()
def _take_options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    """Run a distributed runtime for task-oriented conversational agents."""


for _name, (_, _summary) in COMMANDS.items():
    app.command(_name, help=_summary)(lambda: None)


def main() -> None:
    arguments, verbose = take_verbose(sys.argv[1:])
    if arguments and not arguments[0].startswith("-"):  # help needs no logging
        _set_up_logging()
    sys.exit(run(arguments, verbose=verbose))


def run(arguments: list[str], *, verbose: bool = False) -> int:
    """Run a command and return its exit code. Print an error as one line on standard error.

    `verbose`: print the traceback instead, except for usage errors.
    """
    try:
        return app(complete_wait(arguments), prog_name="parley", standalone_mode=False) or 0
    except (StopRequested, KeyboardInterrupt, typer.Abort):
        return _INTERRUPTED
    except TyperException as error:
        return _fail(error.format_message(), error.exit_code)
    except BrokenPipeError:
        # The reader closed the pipe. Flushing at exit must not raise again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001 - every error of a command becomes an exit code
        if verbose:
            print(hide_secrets(traceback.format_exc()), file=sys.stderr, end="")
            return 1
        if missing := explain_missing(error):
            return _fail(missing, 1)
        if isinstance(error, ParleyError):
            return _fail(str(error), 1)
        return _fail(f"{type(error).__name__}: {error} (unexpected; run again with --verbose)", 1)


def take_verbose(arguments: list[str]) -> tuple[list[str], bool]:
    """Remove ``--verbose`` before ``--``. Return the other arguments, and whether the option was there."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options, rest = arguments[:end], arguments[end:]
    kept = [word for word in options if word != "--verbose"]
    return kept + rest, len(kept) < len(options)


def complete_wait(arguments: list[str]) -> list[str]:
    """Insert `WAIT_S` after each ``--wait`` before ``--`` that isn't followed by a number."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    completed: list[str] = []
    for place, word in enumerate(arguments):
        completed.append(word)
        following = arguments[place + 1] if place + 1 < end else ""
        if word == "--wait" and place < end and not following[:1].isdigit():
            completed.append(WAIT_S)
    return completed


def _set_up_logging() -> None:
    import logging  # noqa: PLC0415  # slow to import

    from orchestrator.settings.environment import environment_secrets  # noqa: PLC0415
    from orchestrator.telemetry.logs import set_up_logging  # noqa: PLC0415

    set_up_logging(logging.WARNING, environment_secrets())


def _fail(message: str, code: int) -> int:
    line = hide_secrets("; ".join(" ".join(part.split()) for part in message.splitlines() if part.strip()))
    print(f"parley: {line}", file=sys.stderr)
    return code
