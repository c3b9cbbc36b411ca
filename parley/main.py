"""The command ``parley``: lists the commands, loads the one that is called, and turns errors into one line."""

import os
import sys
import traceback
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException
from typer.main import get_group

from orchestrator.errors import ParleyError
from orchestrator.extras import explain_missing
from orchestrator.redaction import hide_secrets
from parley.signals import StopRequested

_INTERRUPTED = 130
WAIT_S = "30"

COMMANDS: Final = {
    "up": ("up", "Run everything on this machine until Ctrl-C."),
    "serve": ("serve", "Run one role until SIGTERM."),
    "health": ("serve", "Check the role that runs beside this command."),
    "chat": ("chat", "Talk to an assistant: each line is one turn."),
    "submit": ("gateway.sessions", "Submit one turn to a session."),
    "sessions": ("gateway.sessions", "List the sessions, newest activity first."),
    "show": ("gateway.sessions", "Show a session: its facts and its flow stack, top last."),
    "history": ("gateway.sessions", "Print what was said in a session, oldest first."),
    "rollback": ("gateway.sessions", "Make an earlier state of a session current again."),
    "branch": ("gateway.sessions", "Make a session that goes on from an epoch of another one."),
    "compare": ("gateway.sessions", "Lay two sessions beside each other from where they part."),
    "repair": ("gateway.repair", "Show what is wrong with a session, or repair it as an operator."),
    "turns": ("gateway.turns", "List turns; retry, drop or cancel one."),
    "approvals": ("gateway.turns", "List what waits for an approval; grant or deny it."),
    "feedback": ("gateway.feedback", "List what people said of answers, and make cases of it."),
    "runs": ("gateway.runs", "List housekeeping runs; start, watch, cancel or redo one."),
    "documents": ("gateway.documents", "Keep, list, search or delete documents that answers draw on."),
    "memory": ("gateway.memory", "Show what is remembered of a user, or forget it."),
    "webhooks": ("gateway.webhooks", "Have events sent elsewhere; list what fails, and retry it."),
    "keys": ("keys", "Make, list and revoke keys of callers, in the database itself."),
    "domain": ("domain", "Work on domain folders."),
    "migrate": ("stores", "Bring the database to the newest schema."),
    "redis-acl": ("stores", "Print an ACL file for Redis (`aclfile`)."),
    "doctor": ("doctor", "Check everything that a run or a deployment needs."),
    "eval": ("evaluate", "Measure a domain on its conversations."),
    "replay": ("replay", "Decide finished conversations or housekeeping runs once more."),
    "explain": ("explain", "Show how a sentence is understood."),
    "soak": ("soak", "Book flights while workers, gateway and stores are killed."),
    "bench": ("bench", "Run one benchmark."),
}
"""By name: the module below `parley.commands`, and the line of ``parley --help``, which imports none of them."""


def load_command(name: str) -> Any:
    """Import a command: the one of that name in its module's `app`, else the whole group."""
    module, _ = COMMANDS[name]
    group = get_group(import_module(f"parley.commands.{module}").app)
    group.name = name
    return group.commands.get(name, group)


class _LazyGroup(TyperGroup):
    """Lists all commands by their summaries, and imports only the one that is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and load_command(str(name)), rest


app = typer.Typer(
    cls=_LazyGroup,
    help="A distributed runtime for task-oriented conversational agents.",
    epilog="Add --verbose to any command to see the whole traceback of an error.",
    no_args_is_help=True,
    rich_markup_mode=None,  # the list is there sooner without rich
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415  # slow to import, seldom needed

        print(f"parley {version('parley')}")
        raise typer.Exit


@app.callback()
def _take_options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version, and end.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    """A distributed runtime for task-oriented conversational agents."""


for _name, (_, _summary) in COMMANDS.items():
    app.command(_name, help=_summary)(lambda: None)


def main() -> None:
    """Run the command line and end the process."""
    arguments, verbose = take_verbose(sys.argv[1:])
    if arguments and not arguments[0].startswith("-"):  # help is there sooner without
        _set_up_logging()
    sys.exit(run(arguments, verbose=verbose))


def run(arguments: list[str], *, verbose: bool = False) -> int:
    """Run one command and return its exit code. Errors become one line on standard error."""
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
    except Exception as error:  # noqa: BLE001 - every error of a command is reported, and ends with a code
        if verbose:
            print(hide_secrets(traceback.format_exc()), file=sys.stderr, end="")
            return 1
        if missing := explain_missing(error):
            return _fail(missing, 1)
        if isinstance(error, ParleyError):
            return _fail(str(error), 1)
        return _fail(f"{type(error).__name__}: {error} (unexpected; --verbose shows where)", 1)


def take_verbose(arguments: list[str]) -> tuple[list[str], bool]:
    """Take ``--verbose`` out, which may stand anywhere before ``--``."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options, rest = arguments[:end], arguments[end:]
    kept = [word for word in options if word != "--verbose"]
    return kept + rest, len(kept) < len(options)


def complete_wait(arguments: list[str]) -> list[str]:
    """Write `WAIT_S` after a ``--wait`` without a number."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    completed: list[str] = []
    for place, word in enumerate(arguments):
        completed.append(word)
        following = arguments[place + 1] if place + 1 < end else ""
        if word == "--wait" and place < end and not following[:1].isdigit():
            completed.append(WAIT_S)
    return completed


def _set_up_logging() -> None:
    import logging  # noqa: PLC0415  # slow to import, with what follows

    from orchestrator.settings.environment import environment_secrets  # noqa: PLC0415
    from orchestrator.telemetry.logs import set_up_logging  # noqa: PLC0415

    set_up_logging(logging.WARNING, environment_secrets())


def _fail(message: str, code: int) -> int:
    line = hide_secrets("; ".join(" ".join(part.split()) for part in message.splitlines() if part.strip()))
    print(f"parley: {line}", file=sys.stderr)
    return code
