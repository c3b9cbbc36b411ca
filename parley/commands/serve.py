import os
import runpy
import sys
from typing import Annotated

import typer

from orchestrator.settings import load_settings
from orchestrator.settings.environment import read_environment
from parley.commands.options import AsJson
from parley.output import Answer, print_result
from parley.probe import probe
from parley.roles import ONE_THREAD_EACH, PORTS, Role, Seat, check_flower, command_of

app = typer.Typer()


@app.command()
def serve(
    role: Annotated[Role, typer.Argument(help="Role to run.")],
    host: Annotated[
        str, typer.Option(envvar="PARLEY_HOST", help="Address that the gateway or Flower listens on.")
    ] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option(
            envvar="PARLEY_PORT", min=1, max=65535, help="Port of the gateway (8600) or Flower (5555)."
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Worker name; %h stands for the host name.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Number of concurrent tasks per worker.")] = None,
) -> None:
    """Run one role until SIGTERM. Store URLs and secrets come from the environment."""
    seat = Seat(host=host, port=port or PORTS.get(role, 0), name=name, threads=threads)
    os.environ.update(make_environment(role, seat))
    _, module, *arguments = command_of(role, seat)
    sys.argv = [module, *arguments]
    # Run in this process, so that signals reach the role and imported modules are reused.
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def make_environment(role: Role, seat: Seat) -> dict[str, str]:
    """Return the role's environment.

    Raises ConfigurationError if a setting is invalid, or InvalidInput if other machines could reach Flower
    without a password.
    """
    load_settings()
    environment = {**ONE_THREAD_EACH, **read_environment()}
    if role is Role.FLOWER:
        check_flower(seat, environment)
    return environment


@app.command()
def health(
    role: Annotated[Role, typer.Argument(help="Role to check.")],
    live: Annotated[bool, typer.Option("--live", help="Check only liveness, not readiness.")] = False,
    port: Annotated[
        int | None,
        typer.Option(envvar="PARLEY_PORT", min=1, max=65535, help="Port of the gateway or Flower."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the health of a role in this container."""
    found = probe(role, live=live, port=port)
    print_result(Answer({"role": role.value, "found": found}, found), as_json=as_json)
