import os
from typing import Annotated

import typer

from gateway.auth.binding import require_safe_host, requires_callers
from orchestrator.adapters.redis.address import for_celery
from orchestrator.errors import Unavailable
from orchestrator.redaction import hide_secrets
from orchestrator.settings import NO_STORES, read_settings
from orchestrator.settings.environment import read_variable
from parley.commands.options import DEFAULT_DATA_DIR, DEFAULT_DOMAIN, DataDir, Domain, resolve_domain
from parley.data_folder import UpNote
from parley.embedded.ports import is_free
from parley.output import say
from parley.signals import StopRequested, stop_on_signals
from parley.stack import RunningStack, StackPlan, note_models, run_stack
from parley.supervision import supervise

app = typer.Typer()


@app.command()
def up(
    domain: Domain = DEFAULT_DOMAIN,
    host: Annotated[str, typer.Option(help="Address that the gateway listens on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port that the gateway listens on.")] = 8600,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    workers: Annotated[int, typer.Option(min=1, help="Number of worker processes for turns.")] = 1,
) -> None:
    """Run everything on this machine until Ctrl-C.

    Starts the stores, the gateway, the workers, the scheduler and Flower.
    """
    plan = StackPlan(
        data_dir=data_dir.resolve(),
        domain=resolve_domain(domain),
        host=host,
        port=port,
        turn_workers=workers,
        database_url=read_variable("DATABASE_URL"),
        redis_url=read_variable("REDIS_URL"),
    )
    require_safe_host(host, authenticated=requires_callers(read_settings(**NO_STORES)))
    if not is_free(host, port):
        raise Unavailable(f"Port {port} on {host} is in use: choose another with --port.")
    try:
        with stop_on_signals(), run_stack(plan, say) as running:
            _announce(plan, running)
            try:
                supervise(running.children, say)
            finally:
                say("Stopping after the running turns (press Ctrl-C again to stop now).")
                UpNote.path(plan.data_dir).unlink(missing_ok=True)
    except StopRequested:
        say("Stopped.")


def _announce(plan: StackPlan, running: RunningStack) -> None:
    note = UpNote(url=running.url, pid=os.getpid(), domain=plan.domain, metrics=running.metrics)
    note.write(plan.data_dir)
    note_models(say)
    say(f"Inspector {running.url}/")
    say(f"Gateway   {running.url}  (API at {running.url}/docs)")
    broker = read_variable("PARLEY_BROKER_URL") or running.stores.redis_url
    say(f"Broker    {hide_secrets(for_celery(broker))}  (Celery: docs/submit-by-celery.md)")
    flower = running.flower
    if flower is not None:
        say(f"Flower    {flower.url}  (user {flower.user}, password {flower.password})")
    say(f"Metrics   {'  '.join(running.metrics)}")
    say(f"Logs      {plan.data_dir / 'logs'}")
    say("Ready. Talk to it with `parley chat`; Ctrl-C stops everything.")
