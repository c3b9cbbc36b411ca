import platform
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.errors import ParleyError
from orchestrator.settings.environment import read_environment
from parley.commands.options import DEFAULT_DATA_DIR, DEFAULT_DOMAIN, AsJson, DataDir, resolve_domain
from parley.connection import locate_gateway, open_client
from parley.data_folder import is_held
from parley.diagnosis.database import examine_database
from parley.diagnosis.finding import Finding, attempt, bad, note, well
from parley.diagnosis.messaging import examine_broker, examine_processes, examine_redis
from parley.diagnosis.surroundings import (
    examine_flower,
    examine_folders,
    examine_models,
    examine_settings,
    read_model_settings,
)
from parley.embedded.postgres import find_binaries, running_database
from parley.embedded.redis import find_server, running_redis
from parley.output import Answer, print_result

app = typer.Typer()

_MARKS = {True: "ok  ", False: "BAD ", None: "note"}


@app.command()
def doctor(
    data_dir: DataDir = DEFAULT_DATA_DIR,
    domain: Annotated[
        str,
        typer.Option(envvar="PARLEY_DOMAIN", help="Name of a built-in domain, or path to a domain folder."),
    ] = DEFAULT_DOMAIN,
    preflight: Annotated[
        bool, typer.Option("--preflight", help="Check only the prerequisites for starting.")
    ] = False,
    model: Annotated[
        bool,
        typer.Option(
            "--model", help="Check only the configured model, with a dozen small requests. Costs tokens."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check the environment and a running deployment.

    Checks the stores, workers, gateway, models, domain and settings. Exits with status 1 if a check fails.
    """
    broken = False
    folder = data_dir.resolve()
    environment = {**_running_stores(folder), **read_environment()}
    findings = (
        _examine_model(environment) if model else examine(folder, domain, environment, preflight=preflight)
    )
    for finding in findings:
        broken = broken or finding.fine is False
        remedy = f"; {finding.remedy}" if finding.remedy else ""
        text = f"{_MARKS[finding.fine]}  {finding.name:<16} {finding.message}{remedy}"
        print_result(Answer(finding.as_json(), text), as_json=as_json)
    if broken:
        raise typer.Exit(1)


def _examine_model(environment: Mapping[str, str]) -> Iterator[Finding]:
    from parley.diagnosis.model_probe import examine_model  # noqa: PLC0415 - slow to import

    remedy = "correct PARLEY_MODEL, its key or its endpoint"
    yield from attempt("model", lambda: examine_model(read_model_settings(environment)), remedy)


def _running_stores(data_dir: Path) -> dict[str, str]:
    """Return the store URLs, by variable name, of the `parley up` that uses this data folder."""
    if not is_held(data_dir):
        return {}
    found = {"DATABASE_URL": running_database(data_dir), "REDIS_URL": running_redis(data_dir)}
    return {name: address for name, address in found.items() if address is not None}


def examine(
    data_dir: Path, domain: str, environment: Mapping[str, str], *, preflight: bool
) -> Iterator[Finding]:
    """Yield the findings of all checks, in startup order. `preflight`: True to skip checks of running processes."""
    database_url, redis_url = environment.get("DATABASE_URL"), environment.get("REDIS_URL")
    embedded = database_url is None or redis_url is None
    yield well("python", f"{platform.python_version()} on {platform.system()}")
    yield from examine_settings(environment)
    yield from examine_folders(data_dir, environment, embedded=embedded)
    yield from _examine_stores(environment)
    yield from attempt(
        "domain", lambda: _check_domain(domain), "correct the folder, or choose another domain"
    )
    if not preflight:
        if redis_url is not None and database_url is not None:
            yield from attempt("workers", lambda: examine_processes(redis_url), "see redis above")
        yield from _check_gateway(data_dir)
        yield from examine_flower(environment)
    yield from examine_models(environment)


def _examine_stores(environment: Mapping[str, str]) -> Iterator[Finding]:
    redis_url, database_url = environment.get("REDIS_URL"), environment.get("DATABASE_URL")
    broker_url = environment.get("PARLEY_BROKER_URL")
    if redis_url is None:
        yield from attempt(
            "redis",
            lambda: iter([well("redis", f"embedded, {find_server()}")]),
            "reinstall the package, or point REDIS_URL at a running Redis",
        )
    else:
        yield from attempt(
            "redis",
            lambda: examine_redis(redis_url),
            "start Redis, or correct REDIS_URL; until then, accepted turns wait and live events stop",
        )
    if broker_url is not None and not broker_url.startswith("redis"):
        yield from examine_broker(broker_url)
    if database_url is None:
        yield from attempt(
            "postgres",
            lambda: iter([well("postgres", f"embedded, {find_binaries(None)}")]),
            "reinstall the package, or point DATABASE_URL at a running server",
        )
    else:
        yield from attempt(
            "postgres",
            lambda: examine_database(database_url, guarded=_separates_tenants(environment)),
            "start PostgreSQL, or correct DATABASE_URL; until then, no turns are accepted",
        )


def _separates_tenants(environment: Mapping[str, str]) -> bool:
    row_security = environment.get("PARLEY_ROW_SECURITY", "").lower()
    return environment.get("PARLEY_AUTH") == "required" or row_security in {"1", "true", "yes", "on"}


def _check_domain(domain: str) -> Iterator[Finding]:
    from orchestrator.adapters.domains.folder import domain_folder  # noqa: PLC0415 - slow to import
    from workers.internal.catalogue import check_internal_flows  # noqa: PLC0415 - slow to import

    named = resolve_domain(domain)
    problems = check_internal_flows(domain_folder(named) or Path(named))
    for problem in problems:
        yield bad("domain", f"a background flow or job is invalid: {problem}", "run `parley domain check`")
    if not problems:
        yield well("domain", f"{named} is valid")


def _check_gateway(data_dir: Path) -> Iterator[Finding]:
    url = locate_gateway(None, data_dir)
    if url is None:
        running = "the gateway is starting or stopping" if is_held(data_dir) else "no gateway is configured"
        yield note(
            "gateway", running, "set PARLEY_URL to check a gateway, or start everything with `parley up`"
        )
        return
    try:
        with open_client(url) as client:
            client.ready()
        yield well("gateway", f"{url} is ready")
    except ParleyError as error:
        yield bad(
            "gateway",
            str(error),
            f"start the gateway (`parley serve gateway`), or check its log; the URL is {url}",
        )
