"""Replay sessions in parallel processes."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import multiprocessing.connection
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, Final

import orjson

from lab.replay.comparing import compare
from lab.replay.recordings import PostgresRecordings, RecordedSession
from lab.replay.sandbox import Sandbox
from orchestrator.adapters.domains.folder import LoadedDomain, domain_folder, load_domain
from orchestrator.adapters.models.pool import ModelPool, open_embedder, read_endpoints
from orchestrator.adapters.models.providers import Endpoint
from orchestrator.adapters.postgres.pool import Database
from orchestrator.errors import InvalidInput, NotFound, Unavailable
from orchestrator.models.config import DEFAULT_PROVIDER
from orchestrator.models.templates import Prompt, parse_prompt
from orchestrator.nlu.system1 import System1
from orchestrator.runtime.journal import TOOL
from orchestrator.settings import NO_STORES, Settings, read_settings
from orchestrator.telemetry import SignalType
from orchestrator.types import DEFAULT_TENANT, JsonObject, SessionId

AT_ONCE: Final = 50
"""Maximum number of sessions that a process reads together."""
FEWEST_AT_ONCE: Final = 5
UNASKED: Final = "http://unasked.invalid/v1"
"""Placeholder URL for models with recorded answers. Parley never requests it."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The sessions to replay, and the changes to test.

    `sessions`: session IDs. If empty, the `last` most recently active sessions of the domain `of`. `domain`: name or
    folder of the domain to replay against. Default: the sessions' own domain. `prompt`: ``ID@VERSION`` of the prompt
    version to use. `model`: the model to ask. Default: recorded answers. `since`: the first epoch to replay.
    """

    sessions: tuple[SessionId, ...] = ()
    last: int = 0
    of: str | None = None
    tenant: str = DEFAULT_TENANT
    domain: str | None = None
    prompt: str | None = None
    model: str | None = None
    since: int = 0


@dataclass(frozen=True, slots=True)
class Setup:
    """The data that all replay processes inherit. `url`: database URL. `model`, `since`: see `Wanted`."""

    url: str
    settings: Settings
    loaded: LoadedDomain
    system1: System1
    model: str | None
    since: int


def open_models(settings: Settings, loaded: LoadedDomain, model: str | None) -> ModelPool:
    """Return a pool that calls `model` or, if that is None, a pool with an unreachable endpoint URL.

    Raises InvalidInput if `model` has no endpoint.
    """
    if model is not None:
        endpoints = read_endpoints(settings)
        if not endpoints:
            raise InvalidInput(
                "A model needs an endpoint: set OPENAI_API_KEY or OPENAI_BASE_URL.", field="model"
            )
        return ModelPool(endpoints, model=model)
    models = loaded.domain.config.models
    named = (models.default, models.fallback, *models.per_prompt.values())
    providers = {DEFAULT_PROVIDER, *(one.provider for one in named if one is not None)}
    return ModelPool({name: Endpoint(base_url=UNASKED) for name in providers}, model=settings.model)


def replay(
    url: str,
    wanted: Wanted,
    *,
    processes: int = 1,
    counted: Callable[[int, int], None] = lambda _done, _all: None,
) -> tuple[str, list[JsonObject], float]:
    """Replay sessions. Return their domain, the result of each session, and the duration in seconds.

    `counted`: called with the number of finished sessions and the total.

    Raises:
        NotFound: no session matches.
        InvalidInput: the sessions belong to several domains, or the prompt or model is unknown.
        ConfigurationError: the domain is invalid.
        Unavailable: the database does not respond.
    """
    found = asyncio.run(_find(url, wanted))
    domains = sorted(set(found.values()))
    if not domains and wanted.sessions:
        raise NotFound("session", ", ".join(wanted.sessions))
    if not domains:
        raise NotFound("session of domain", wanted.of or "any")
    if len(domains) > 1:
        raise InvalidInput(
            f"Replay one domain at a time; these sessions use {', '.join(domains)}.", field="session"
        )
    loaded = prepare(wanted, domains[0])
    settings = read_settings(**NO_STORES)
    setup = Setup(url, settings, loaded, System1.for_domain(loaded.domain), wanted.model, wanted.since)
    open_models(settings, loaded, wanted.model)  # report invalid models before any process is forked
    began, done = time.monotonic(), list[JsonObject]()
    for outcome in _share(setup, list(found), processes):
        done.append(outcome)
        counted(len(done), len(found))
    places = {name: place for place, name in enumerate(found)}
    return domains[0], sorted(done, key=lambda one: places[one["session"]]), time.monotonic() - began


def prepare(wanted: Wanted, recorded: str) -> LoadedDomain:
    """Load the domain to replay against, with the changes in `wanted`, under the name `recorded`.

    Raises the errors of `replay`.
    """
    loaded = load_domain(wanted.domain or recorded)
    config = loaded.domain.config
    if wanted.prompt is not None:
        prompts = {**config.prompts, **_find_prompt(wanted.prompt, wanted.domain or recorded)}
        config = config.model_copy(update={"prompts": prompts})
    if wanted.model is not None:
        models = config.models.model_copy(update={"default": None, "per_prompt": {}})
        config = config.model_copy(update={"models": models})
    return replace(loaded, domain=replace(loaded.domain, name=recorded, config=config))


def _find_prompt(said: str, domain: str) -> dict[str, str]:
    """Return the text of the prompt version ``ID@VERSION``, from the package or the domain folder, by file name.

    Raises InvalidInput if there is no such version.
    """
    prompt_id, _, version = said.partition("@")
    file = f"{prompt_id}.md"
    shipped = resources.files("orchestrator.models.prompts") / file
    texts = [shipped.read_text(encoding="utf-8")] if shipped.is_file() else []
    own = (domain_folder(domain) or Path()) / "prompts"
    texts += [path.read_text(encoding="utf-8") for path in sorted(own.rglob(file))]
    read = [(one, text) for text in texts if isinstance(one := parse_prompt(file, text), Prompt)]
    for one, text in read:
        if one.version == version:
            return {file: text}
    known = ", ".join(f"{prompt_id}@{one.version}" for one, _ in read)
    hint = f"; available versions: {known}" if known else ""
    raise InvalidInput(f"Prompt {said} not found{hint}.", field="prompt")


async def _find(url: str, wanted: Wanted) -> dict[SessionId, str]:
    async with Database(url, reading_size=1, size=1, read_only=True) as database:
        recordings = PostgresRecordings(database)
        return await recordings.find(
            wanted.sessions, domain=wanted.of, tenant=wanted.tenant, last=wanted.last
        )


def _share(setup: Setup, wanted: Sequence[SessionId], processes: int) -> Iterator[JsonObject]:
    """Replay the sessions in child processes, or in this process if there are few, and yield their results.

    Raises Unavailable if a child process fails.
    """
    parts = [*_cut(wanted, processes)]
    if min(processes, len(parts)) <= 1:
        outcomes: list[JsonObject] = []
        asyncio.run(replay_parts(setup, parts, outcomes.append))
        yield from outcomes
        return
    forking = multiprocessing.get_context("fork")
    taken = forking.Value("i", 0)
    readers: dict[Any, Any] = {}
    for _ in range(min(processes, len(parts))):
        reader, writer = forking.Pipe(duplex=False)
        process = forking.Process(target=_run, args=(setup, parts, taken, writer), daemon=True)
        process.start()
        writer.close()
        readers[reader] = process
    while readers:
        for reader in multiprocessing.connection.wait(list(readers)):
            try:
                yield orjson.loads(reader.recv_bytes())  # pyright: ignore[reportAttributeAccessIssue]
            except EOFError:
                process = readers.pop(reader)
                process.join()
                if process.exitcode:
                    raise Unavailable("A replay process ended unexpectedly; see its errors above.") from None


def _cut(wanted: Sequence[SessionId], processes: int) -> Iterator[Sequence[SessionId]]:
    """Split sessions into progressively smaller batches, so that all processes finish at about the same time."""
    at = 0
    while at < len(wanted):
        size = min(AT_ONCE, max(FEWEST_AT_ONCE, (len(wanted) - at) // (2 * processes)))
        yield wanted[at : at + size]
        at += size


def _take(parts: Sequence[Sequence[SessionId]], taken: Any) -> Iterator[Sequence[SessionId]]:
    """Yield parts that this process claims, until all are claimed. `taken`: shared number of claimed parts."""
    while True:
        with taken.get_lock():
            number = taken.value
            taken.value += 1
        if number >= len(parts):
            return
        yield parts[number]


def _run(setup: Setup, parts: Sequence[Sequence[SessionId]], taken: Any, writer: Any) -> None:
    take = _take(parts, taken)
    asyncio.run(replay_parts(setup, take, lambda outcome: writer.send_bytes(orjson.dumps(outcome))))
    writer.close()


async def replay_parts(
    setup: Setup, parts: Iterable[Sequence[SessionId]], put: Callable[[JsonObject], None]
) -> None:
    """Replay sessions in this process and pass each result to `put`.

    Raises Unavailable if the database doesn't respond.
    """
    async with AsyncExitStack() as closing:
        database = Database(setup.url, reading_size=2, size=1, read_only=True)
        await closing.enter_async_context(database)
        models = open_models(setup.settings, setup.loaded, setup.model)
        closing.push_async_callback(models.aclose)
        embedder = open_embedder(setup.settings, closing)
        asks = setup.model is not None
        sandbox = Sandbox(setup.loaded, setup.system1, database, embedder, models, asks=asks)
        gc.disable()  # collections would scan the loaded sessions repeatedly
        closing.callback(gc.enable)
        gc.freeze()
        for part in parts:
            await _replay_part(sandbox, await PostgresRecordings(database).read(part), setup.since, put)
            gc.collect()
            gc.freeze()


async def _replay_part(
    sandbox: Sandbox, sessions: Sequence[RecordedSession], since: int, put: Callable[[JsonObject], None]
) -> None:
    await sandbox.look_up(sessions)
    for session in sessions:
        put(await replay_session(sandbox, session, since=since))


async def replay_session(sandbox: Sandbox, session: RecordedSession, *, since: int = 0) -> JsonObject:
    """Replay each turn of a session from its recorded state, so that differences don't accumulate.

    `since`: the first epoch to replay.
    """
    had_model = any(
        any(step.kind != TOOL for step in turn.steps)
        or any(one["type"] == SignalType.MODEL_CALL.value for one in turn.signals)
        for turn in session.turns
    )
    turns = [turn for turn in session.turns if turn.epoch >= since]
    different, missed, remembering = list[JsonObject](), Counter[str](), 0
    for turn in turns:
        replayed = await sandbox.replay(session, turn, by_model=had_model)
        remembering += replayed.remembers
        missed.update(key.rpartition(":")[0] for key, _ in replayed.missed if key.startswith(TOOL))
        if changes := compare(turn, replayed):
            action = None if turn.input.action is None else turn.input.action.get("name")
            different.append(
                {
                    "turn": turn.turn_id,
                    "epoch": turn.epoch,
                    "said": turn.input.text or f"[{action}]",
                    "remembers": replayed.remembers,
                    "changes": changes,
                }
            )
    return {
        "session": session.session_id,
        "turns": len(turns),
        "left_out": dict(session.left_out),
        "remembering": remembering,
        "not_made": dict(missed),
        "different": different,
    }
