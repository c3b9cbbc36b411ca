import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import orjson

from orchestrator.agent.modules import Modules
from orchestrator.agent.running import RunningTurn
from orchestrator.context import Recall, TurnChanges, TurnContext, TurnIds, TurnLog, World
from orchestrator.dialogue.consent import open_state
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.records import Label
from orchestrator.dialogue.specification import SlotSpec
from orchestrator.dialogue.state import DialogueState
from orchestrator.dialogue.storage.serialization import rebuild
from orchestrator.dialogue.understanding import Mention
from orchestrator.domain.locales import ENGLISH, forms_for, forms_in_use
from orchestrator.errors import Unavailable
from orchestrator.memory.notes import SessionNotes
from orchestrator.memory.tokenizer import share_of
from orchestrator.memory.user_memory import UserPreferences, assumable, owner_of
from orchestrator.models.calling import CallContext
from orchestrator.models.journal import CallJournal
from orchestrator.nlu.module import NLU
from orchestrator.pex.skills.components import search_documents
from orchestrator.ports.memory.documents import Passage
from orchestrator.ports.memory.preferences import PreferenceStore
from orchestrator.runtime.journal import Journal
from orchestrator.telemetry.signals import keep_for_turn
from orchestrator.telemetry.traces import Phases
from orchestrator.turns.lease import Lease, Work
from orchestrator.types import Epoch, JsonObject


class RecentTurns:
    """A value finder that searches the conversation and the user's preferences, at most once per flow and turn."""

    def __init__(self, nlu: NLU, context: TurnContext) -> None:
        self._nlu = nlu
        self._context = context
        self._seen: set[str] = set()

    async def find_values(self, flow: BaseFlow, slots: Sequence[SlotSpec]) -> dict[str, Mention]:
        first = flow.flow_id not in self._seen
        self._seen.add(flow.flow_id)
        if not first or not await self._worth_it(flow):
            return {}
        return await self._nlu.find_values(flow, slots, self._context)

    async def _worth_it(self, flow: BaseFlow) -> bool:
        """Return whether there is something to search.

        Unless the domain sets `slot_fill: on`, only a flow's first turn searches.
        """
        context = self._context
        if len(flow.turn_ids) > 1 and context.world.domain.config.nlu.slot_fill != "on":
            return False
        preferences = context.recall.preferences
        return bool(context.state.history.lines or (preferences and await preferences.find("")))


class DocumentFinder:
    """A value finder that searches the user's documents in a flow's first turn.

    The search fills only slots whose values may be assumed, with values that occur in a trusted passage.
    """

    def __init__(self, nlu: NLU, context: TurnContext) -> None:
        self._nlu = nlu
        self._context = context
        self._seen: set[str] = set()
        self.sources: dict[str, Passage] = {}

    async def find_values(self, flow: BaseFlow, slots: Sequence[SlotSpec]) -> dict[str, Mention]:
        context, wanted = self._context, [slot for slot in assumable(flow.spec) if slot in slots]
        if not wanted or len(flow.turn_ids) > 1 or flow.flow_id in self._seen:
            return {}
        self._seen.add(flow.flow_id)
        names = (f"{slot.name.replace('_', ' ')} {slot.description}" for slot in wanted)
        try:
            passages = await search_documents(context, " ".join((flow.title, *names)))
        except Unavailable as error:
            context.log.failed_check("pex", "documents", str(error), flow.flow_id)
            return {}
        passages = [one for one in passages if Label.UNTRUSTED not in one.labels]
        if not passages:
            return {}
        quoted = [f"From the document {one.title!r}: {one.text}" for one in passages]
        found = await self._nlu.find_values(flow, wanted, context, quoted)
        self.sources = {
            name: passage
            for name, mention in found.items()
            for passage in passages
            if share_of(mention.text, passage.text) == 1.0
        }
        return {name: found[name] for name in self.sources}


def known_preferences(
    ids: TurnIds, state: DialogueState, store: PreferenceStore, told: frozenset[str]
) -> UserPreferences | None:
    """Return the user's preferences, which are loaded on first use.

    `told`: names of flows that store preferences. Without a user ID, return None unless one of these flows
    has completed in this session.
    """
    if ids.user_id is None and not _was_told(state, told):
        return None
    return UserPreferences(store, ids.tenant_id, owner_of(ids.user_id, ids.root or ids.session_id))


def _was_told(state: DialogueState, told: frozenset[str]) -> bool:
    if told:
        for turn in state.history.trace:  # up to a hundred turns, so avoid a function call per turn
            if "completed" in turn and not told.isdisjoint(turn["completed"]):
                return True
    return False


FRESH = frozenset({b"", b"{}"})
"""Stored states of new sessions."""

KEPT_BACK = 0.2
MOST_KEPT_BACK_S = 5.0
"""Maximum time reserved at a turn's end for answering without models, in seconds.
`KEPT_BACK`: the reserved share of the deadline.
"""


def load(lease: Lease, work: Work, journal: Journal, modules: Modules, phases: Phases) -> RunningTurn:
    """Create the running turn. Raises SchemaTooNew if a later release wrote the state."""
    state, prior_state = decode(lease, modules)
    state.begin_turn()
    ports, began, here = modules.ports, time.monotonic(), modules.ports.clock()
    now, config, user = work.accepted_at, modules.domain.config, work.input
    locale = user.locale or config.session.locale
    plain = locale is None and config.language.default == ENGLISH
    forms_in_use.set(None if plain else forms_for(locale, config.language.default))
    ids = TurnIds(lease.session_id, lease.tenant_id, lease.user_id, work.turn_id, lease.root)
    changes = TurnChanges()
    context = TurnContext(
        world=World(
            modules.domain, modules.registry.for_session(state.intake.entities), prior_state, changes.frames
        ),
        ids=ids,
        text=work.input.text or "",
        now=now,
        local_now=_local_time(now, user.timezone or config.session.timezone),
        deadline=here + work.deadline_s,
        journal=journal,
        call=_make_call(lease, work, journal, began),
        recall=_recall(ids, state, modules),
        log=TurnLog(ids, ports.record_signal),
        state=state,
        changes=changes,
        live=ports.live,
        locale=locale,
        action=user.action,
        arrived_at=here - work.waited_s,
    )
    keep_for_turn(work.turn_id, context.log.signals)
    context.log.event("started", seq=work.seq)
    context = hear(context, modules, context.text)
    return RunningTurn(lease, work, context, phases, began)


def _local_time(now: float, zone: str) -> float:
    return datetime.fromtimestamp(now, ZoneInfo(zone)).replace(tzinfo=UTC).timestamp()


def _recall(ids: TurnIds, state: DialogueState, modules: Modules) -> Recall:
    memory, can_gather = modules.ports.memory, modules.ports.gather is not None
    if memory is None:
        return Recall(SessionNotes(state), can_gather=can_gather)
    return Recall(
        SessionNotes(state, memory.scratchpad, ids.tenant_id, ids.session_id),
        preferences=known_preferences(ids, state, memory.preferences, modules.remembering),
        documents=memory.context,
        can_gather=can_gather,
    )


def hear(context: TurnContext, modules: Modules, text: str) -> TurnContext:
    """Return the context with `text` as the turn's message and with new value finders.

    There are no value finders if the domain disables the search or no model is configured.
    """
    if text != context.text:
        context = replace(context, text=text)
    if context.world.domain.config.nlu.slot_fill == "off" or not modules.nlu.has_model:
        return context
    recent = RecentTurns(modules.nlu, context)
    documents = None if context.recall.documents is None else DocumentFinder(modules.nlu, context)
    return replace(context, recall=replace(context.recall, recent_turns=recent, document_finder=documents))


def _make_call(lease: Lease, work: Work, journal: Journal, began: float) -> CallContext:
    """Return the context for the turn's model calls.

    If the turn is retried, the journal returns the models' earlier answers.
    """
    kept_back = min(MOST_KEPT_BACK_S, work.deadline_s * KEPT_BACK)
    return CallContext(
        session_id=lease.session_id,
        turn_id=work.turn_id,
        tenant_id=lease.tenant_id,
        user_id=lease.user_id,
        deadline=began + work.deadline_s - kept_back,
        journal=CallJournal(journal),
    )


def decode(lease: Lease, modules: Modules) -> tuple[DialogueState, JsonObject]:
    """Return the decoded state of a lease, and its stored form."""
    raw, stored = lease.state, JsonObject()
    if raw is not None and (raw not in FRESH or lease.patches):
        stored = rebuild(orjson.loads(raw), lease.patches)
    return open_state(stored, lease.session_id, modules.domain.flows, Epoch(lease.epoch + 1)), stored
