"""Where a missing slot's value may be known from: earlier turns, and what is remembered of the user (PX-4)."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.context import TurnContext
from orchestrator.dialogue.flow import BaseFlow, ValueFinder
from orchestrator.dialogue.specification import SlotSpec
from orchestrator.dialogue.understanding import Mention
from orchestrator.memory.user_memory import UserPreferences, owner_of
from orchestrator.nlu.module import NLU
from orchestrator.ports.preferences import PreferenceStore


class RecentTurns:
    """Asks NLU to look for values in the conversation; each flow is looked into once in a turn."""

    def __init__(self, nlu: NLU, context: TurnContext) -> None:
        self._nlu = nlu
        self._context = context
        self._seen: set[str] = set()

    async def find_values(self, flow: BaseFlow, slots: Sequence[SlotSpec]) -> dict[str, Mention]:
        """See `ValueFinder`."""
        first = flow.flow_id not in self._seen
        self._seen.add(flow.flow_id)
        if not first or not self._worth_it(flow):
            return {}
        return await self._nlu.find_values(
            flow, slots, self._context.changes.state, self._context, self._context.call
        )

    def _worth_it(self, flow: BaseFlow) -> bool:
        """Without earlier turns there is nothing to find; under `auto` only a new flow looks for it."""
        begun = len(flow.turn_ids) > 1
        on = self._context.world.domain.config.nlu.slot_fill == "on"
        return bool(self._context.changes.state.history.messages) and (on or not begun)


def recent_turns(nlu: NLU, context: TurnContext) -> ValueFinder | None:
    """The finder of a turn, or None where the domain wants none or no model can be asked."""
    wanted = context.world.domain.config.nlu.slot_fill != "off" and nlu.has_model
    return RecentTurns(nlu, context) if wanted else None


def known_preferences(
    context: TurnContext, store: PreferenceStore, told: frozenset[str]
) -> UserPreferences | None:
    """What is remembered of the user; read when it is first asked for.

    A session without a user has a memory only once something was to be remembered in it, by one of the
    flows `told`.
    """
    if context.ids.user_id is None and not _was_told(context, told):
        return None
    return UserPreferences(
        store, context.ids.tenant_id, owner_of(context.ids.user_id, context.ids.session_id)
    )


def _was_told(context: TurnContext, told: frozenset[str]) -> bool:
    return bool(told) and any(
        not told.isdisjoint(turn.get("completed", ())) for turn in context.changes.state.history.trace
    )
