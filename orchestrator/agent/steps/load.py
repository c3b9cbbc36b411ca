"""The beginning of a turn: its state decoded, or made for a new session, and the world around it."""

from __future__ import annotations

import time

import orjson

from orchestrator.agent.modules import Modules
from orchestrator.agent.running import RunningTurn
from orchestrator.agent.slot_sources import known_preferences, recent_turns
from orchestrator.context import Steps, World
from orchestrator.dialogue.state import DialogueState
from orchestrator.memory.notes import FlowNotes, Notes, SharedNotes
from orchestrator.models import CallContext, CallJournal
from orchestrator.telemetry.signals import keep_for_turn
from orchestrator.turns.lease import Lease, Work
from orchestrator.types import JsonObject

FRESH = frozenset({b"", b"{}"})
"""States of sessions in which nothing has happened yet."""

KEPT_BACK = 0.2
MOST_KEPT_BACK_S = 5.0
"""The share of a turn's time that models may not use, and the most of it: to answer without them."""


def load(lease: Lease, work: Work, steps: Steps, modules: Modules) -> RunningTurn:
    """Make the running turn. Raises ParleyError for a state that cannot be read."""
    state, before = decode(lease, modules)
    now, began = modules.clock(), time.monotonic()
    world = World(
        domain=modules.domain,
        registry=modules.registry.for_session(state.entities),
        state=state,
        session_id=lease.session_id,
        tenant_id=lease.tenant_id,
        user_id=lease.user_id,
        turn_id=work.turn_id,
        now=now,
        deadline=now + work.deadline_s,
        steps=steps,
        call=_make_call(lease, work, steps, began),
        record_signal=modules.record_signal,
        notes=_open_notes(lease, state, modules),
        can_gather=modules.gather is not None,
        text=work.input.text or "",
        live=modules.live,
    )
    keep_for_turn(work.turn_id, world.signals)
    state.turn += 1
    world.event("started", seq=work.seq)
    world.recent_turns = recent_turns(modules.nlu, world)
    if modules.memory is not None:
        world.context = modules.memory.context
        world.preferences = known_preferences(world, modules.memory.preferences, modules.remembering)
    return RunningTurn(lease, work, world, before, began)


def _open_notes(lease: Lease, state: DialogueState, modules: Modules) -> Notes:
    if modules.memory is None:
        return FlowNotes(state)
    return SharedNotes(state, modules.memory.scratchpad, lease.tenant_id, lease.session_id)


def _make_call(lease: Lease, work: Work, steps: Steps, began: float) -> CallContext:
    """For whom models are asked: until shortly before the turn's end, each question once per turn."""
    kept_back = min(MOST_KEPT_BACK_S, work.deadline_s * KEPT_BACK)
    return CallContext(
        session_id=lease.session_id,
        turn_id=work.turn_id,
        deadline=began + work.deadline_s - kept_back,
        journal=CallJournal(steps),
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
