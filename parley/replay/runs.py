"""Replays runs of Internal flows: each of their stages once more, by its record, with nothing that could be changed.

A stage is given what it had: material, inputs, what stages before it had left, its time. So one that would come out
otherwise does not change those after it.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from internal_flows.catalogue import Catalogue
from internal_flows.execution import run_after_all, run_before_all, run_item
from internal_flows.housekeeping import FLOWS
from internal_flows.recording import TOOL, AsksModels, RecordedCalls, describe, read_material, version_of
from internal_flows.stages import InternalFlow, RunContext
from orchestrator.adapters.domains.folder import domain_folder, load_domain, served_folders
from orchestrator.adapters.models.pool import ModelPool
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.runs.recordings import (
    PostgresRunRecordings,
    RecordedStage,
    RunRecording,
)
from orchestrator.domain.configuration import DomainConfig
from orchestrator.errors import InvalidInput, NotFound
from orchestrator.models.journal import KIND as MODEL
from orchestrator.ports.runs.status import Phase
from orchestrator.settings import NO_STORES, read_settings
from orchestrator.types import JsonObject
from parley.replay.comparing import find_changes, name_question
from parley.replay.running import Wanted, open_models, prepare
from workers.internal.catalogue import FlowSettings, own_flows
from workers.internal.model_writer import ModelWriter
from workers.internal.tools import TOOLS

NO_FLOW: Final = "whose flow is gone"
_WRITER: Final = "writer"


@dataclass(frozen=True, slots=True)
class RunSandbox:
    """The flows and models that decide now; `none`: for runs that had no model. `asks`: models are really asked."""

    catalogue: Catalogue
    config: DomainConfig
    models: ModelPool
    none: ModelPool
    asks: bool

    async def replay(self, recording: RunRecording) -> JsonObject:
        """Replay each stage of a run; a report of it. Makes no call but to models that are named."""
        facts = recording.facts
        if not recording.left_out and facts.flow not in self.catalogue.flows:
            recording.left_out = NO_FLOW
        outcome: JsonObject = {
            "run": facts.run_id,
            "stages": 0,
            "left_out": {},
            "not_made": {},
            "different": [],
        }
        if recording.left_out:
            return outcome | {"left_out": {recording.left_out: 1}}
        asked = any(step["kind"] == MODEL for stage in recording.stages for step in stage.body["steps"])
        flow = self.catalogue.flow(facts.flow)()
        not_made = Counter[str]()
        for stage in recording.stages:
            calls = RecordedCalls(stage.body["steps"], asks=self.asks)
            context = self._make_context(recording, stage, flow, calls, self.models if asked else self.none)
            now = await _run_stage(flow, context, stage)
            not_made.update(one["key"] for one in calls.missed if one["kind"] == TOOL)
            then = _decided(stage.body["outcome"], calls.unused, asks=self.asks)
            if changes := find_changes(then, _decided(now, calls.missed, asks=self.asks)):
                name = stage.phase.value if stage.position < 0 else f"item {stage.position + 1}"
                outcome["different"].append(
                    {
                        "run": facts.run_id,
                        "stage": name,
                        "said": facts.flow,
                        "session_id": facts.session_id,
                        "rewritten": stage.body["version"] != version_of(type(flow)),
                        "remembers": False,
                        "changes": changes,
                    }
                )
        return outcome | {"stages": len(recording.stages), "not_made": dict(not_made)}

    def _make_context(
        self,
        recording: RunRecording,
        stage: RecordedStage,
        flow: InternalFlow,
        calls: RecordedCalls,
        models: ModelPool,
    ) -> RunContext:
        """Give a stage what it had; its tools answer from the record."""
        facts = replace(recording.facts, config=self.catalogue.configure(recording.facts.flow), data=None)
        before = recording.stages[0].body["outcome"]
        if stage.phase is not Phase.BEFORE:
            facts = replace(facts, options=before["options"], data=before["data"])
        context = self.catalogue.context(facts)
        writer: AsksModels = ModelWriter(models, lambda _domain: self.config)
        tools = {
            name: writer.recorded_in(calls) if name == _WRITER else calls.tool(name) for name in context.tools
        }
        options = replace(context.options, model=None) if self.asks else context.options
        return replace(
            context, tools=tools, material=read_material(stage.body), now=stage.body["now"], options=options
        )


async def _run_stage(flow: InternalFlow, context: RunContext, stage: RecordedStage) -> JsonObject:
    match stage.phase:
        case Phase.BEFORE:
            return describe(await run_before_all(flow, context, tuple(stage.given)))
        case Phase.ITEMS:
            return describe(await run_item(flow, context, stage.given))
        case Phase.AFTER:
            return describe(await run_after_all(flow, context, stage.given))


def _decided(outcome: JsonObject, steps: list[JsonObject], *, asks: bool = False) -> JsonObject:
    """What a stage came to, by aspect; `steps`: its calls that have no counterpart."""
    passed_on = {name: outcome[name] for name in ("inputs", "data", "options") if name in outcome}
    if asks and passed_on:
        del passed_on["options"]  # they may name the model of then
    found = outcome.get("Done")
    return {
        "inputs": passed_on,
        "calls": [{"tool": one["key"], "arguments": one["request"]} for one in steps if one["kind"] == TOOL],
        "models": [name_question(one["key"]) for one in steps if one["kind"] == MODEL and not asks],
        "findings": None if found is None else found["value"],
        "directives": {} if passed_on or found is not None else outcome,
    }


def replay_runs(
    url: str, wanted: Wanted, *, counted: Callable[[int, int], None] = lambda _done, _all: None
) -> tuple[str, list[JsonObject], float]:
    """Replay runs of a database, those that are named, else the last ones of a domain's sessions.

    Gives the domain, each run with its stages that came out otherwise, and the seconds it took. Raises as `replay`.
    """
    began = time.monotonic()
    domain, outcomes = asyncio.run(_replay(url, wanted, counted))
    return domain, outcomes, time.monotonic() - began


async def find_runs(url: str, wanted: Wanted) -> Mapping[str, str | None]:
    """List the runs that are wanted, each with the domain of its session. Raises Unavailable."""
    async with Database(url, reading_size=1, size=1, read_only=True) as database:
        return await PostgresRunRecordings(database).find(
            wanted.runs, domain=wanted.of, tenant=wanted.tenant, last=wanted.last
        )


async def _replay(
    url: str, wanted: Wanted, counted: Callable[[int, int], None]
) -> tuple[str, list[JsonObject]]:
    found = await find_runs(url, wanted)
    settings = read_settings(**NO_STORES)
    if (missing := set(wanted.runs) - set(found)) or not found:
        raise NotFound("run", ", ".join(sorted(missing)) or f"of the domain {wanted.of}")
    domains = sorted({one for one in found.values() if one is not None})
    if len(domains) > 1:
        raise InvalidInput(f"Replay one domain at a time; these are of {', '.join(domains)}.", field="run")
    if not domains:  # runs of no session
        wanted = replace(wanted, domain=wanted.domain or wanted.of or settings.domain)
        domains = [load_domain(wanted.domain or "").domain.name]
    loaded = prepare(wanted, domains[0])
    models = open_models(settings, loaded, wanted.model)
    folders = served_folders(domain_folder(wanted.domain or domains[0]) or settings.domain)
    own = [flow for folder in reversed(folders) for flow in own_flows(folder)]  # the named folder's go first
    catalogue = Catalogue([*FLOWS, *own], tools=dict.fromkeys(TOOLS), configure=FlowSettings(folders).of_flow)
    outcomes: list[JsonObject] = []
    try:
        async with Database(url, reading_size=2, size=1, read_only=True) as database:
            recordings = PostgresRunRecordings(database)
            sandbox = RunSandbox(
                catalogue,
                loaded.domain.config,
                models,
                ModelPool({}, model=settings.model),
                wanted.model is not None,
            )
            for run_id, domain in found.items():
                outcomes.append(await sandbox.replay(await recordings.read(run_id, domain)))
                counted(len(outcomes), len(found))
    finally:
        await models.aclose()
    return domains[0], outcomes
