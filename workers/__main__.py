"""``python -m workers``: the commands of Celery and Flower that `parley.roles` starts.

Celery's own command line imports all commands and plugins, such as a shell, which slows down the start of every
process.
"""

from __future__ import annotations

import gc
import sys

# With the default thresholds, garbage collection takes a sixth of the startup time.
gc.set_threshold(50_000)

from importlib import import_module  # noqa: E402
from typing import Any, Final  # noqa: E402

import click  # noqa: E402
from celery.app.utils import find_app  # noqa: E402
from celery.bin.base import CLIContext  # noqa: E402

from orchestrator.errors import ConfigurationError  # noqa: E402
from orchestrator.redaction import hide_secrets  # noqa: E402

COMMANDS: Final = {"worker": "celery.bin.worker", "beat": "celery.bin.beat", "flower": "flower.command"}
"""The modules of the commands."""


class LazyCommands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = COMMANDS.get(cmd_name)
        return None if module is None else getattr(import_module(module), cmd_name)


@click.command(cls=LazyCommands)
@click.option("-A", "--app", "name", required=True)
@click.pass_context
def main(context: click.Context, name: str) -> None:
    try:
        app = find_app(name)
    except ConfigurationError as error:
        message = hide_secrets("; ".join(str(error).splitlines()))
        print(f"parley {context.invoked_subcommand}: {message}", file=sys.stderr)  # noqa: T201
        context.exit(2)
    context.obj = CLIContext(app=app, no_color=None, workdir=None)
    assert context.invoked_subcommand is not None
    command = main.get_command(context, context.invoked_subcommand)
    assert command is not None
    options: Any = app.user_options
    command.params.extend(options[context.invoked_subcommand])


if __name__ == "__main__":
    main(auto_envvar_prefix="CELERY")
