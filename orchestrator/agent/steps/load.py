"""Begin a turn: decode its state, or make one for a new session, and put its context together."""

from __future__ import annotations

import time
from dataclasses import replace

import orjson

from orchestrator.agent.modules import Modules
from orchestrator.agent.running import RunningTurn
from orchestrator.agent.slot_sources import known_preferences, recent_turns
from orchestrator.context import Recall, TurnChanges, TurnContext, TurnIds, TurnLog, World
from orchestrator.dialogue.state import DialogueState
from orchestrator.memory.notes import FlowNotes, Notes, SharedNotes
from orchestrator.models import CallContext, CallJournal
from orchestrator.runtime.journal import Journal
from orchestrator.telemetry.signals import keep_for_turn
from orchestrator.turns.lease import Lease, Work
from orchestrator.types import JsonObject

FRESH = frozenset({b"", b"{}"})
"""States of sessions in which nothing has happened yet."""

KEPT_BACK = 0.2
MOST_KEPT_BACK_S = 5.0
"""The share of a turn's time that models may not use, and the most of it: to answer without them."""


def load(lease: Lease, work: Work, journal: Journal, modules: Modules) -> RunningTurn:
    """Make the running turn. Raises ParleyError for a state that cannot be read."""
    state, prior_state = decode(lease, modules)
    state.turn += 1
    ports, began = modules.ports, time.monotonic()
    now = ports.clock()
    ids = TurnIds(lease.session_id, lease.tenant_id, lease.user_id, work.turn_id)
    changes = TurnChanges(state)
    context = TurnContext(
        world=World(
            modules.domain, modules.registry.for_session(state.intake.entities), prior_state, changes.frames
        ),
        ids=ids,
        text=work.input.text or "",
        now=now,
        deadline=now + work.deadline_s,
        journal=journal,
        call=_make_call(lease, work, journal, began),
        recall=Recall(_open_notes(lease, state, modules), can_gather=ports.gather is not None),
        log=TurnLog(ids, ports.record_signal),
        changes=changes,
        live=ports.live,
    )
    keep_for_turn(work.turn_id, context.log.signals)
    context.log.event("started", seq=work.seq)
    return RunningTurn(lease, work, _open_memory(context, modules), changes, began)


def _open_memory(context: TurnContext, modules: Modules) -> TurnContext:
    """Add where values may be known from."""
    memory = modules.ports.memory
    found = replace(context.recall, recent_turns=recent_turns(modules.nlu, context))
    if memory is not None:
        preferences = known_preferences(context, memory.preferences, modules.remembering)
        found = replace(found, preferences=preferences, documents=memory.context)
    return replace(context, recall=found)


def _open_notes(lease: Lease, state: DialogueState, modules: Modules) -> Notes:
    if modules.ports.memory is None:
        return FlowNotes(state)
    return SharedNotes(state, modules.ports.memory.scratchpad, lease.tenant_id, lease.session_id)


def _make_call(lease: Lease, work: Work, journal: Journal, began: float) -> CallContext:
    """For whom models are asked: until shortly before the turn's end, each question once per turn."""
    kept_back = min(MOST_KEPT_BACK_S, work.deadline_s * KEPT_BACK)
    return CallContext(
        session_id=lease.session_id,
        turn_id=work.turn_id,
        deadline=began + work.deadline_s - kept_back,
        journal=CallJournal(journal),
    )


def decode(lease: Lease, modules: Modules) -> tuple[DialogueState, JsonObject]:
    """The state of a lease, and the same as it was stored."""
    raw = lease.state
    if raw is None or raw in FRESH:
        return DialogueState.new(lease.session_id), {}
    known = modules.cache.take(lease.session_id, raw)
    if known is not None:
        return known.state, known.body
    body: JsonObject = orjson.loads(raw)
    return DialogueState.from_dict(body, modules.domain.flows), body
