"""The dialogue context that NLU uses. `read_nlu_context` creates it from the dialogue state."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.lifecycle import INTERRUPTED
from orchestrator.dialogue.questions import Level, Option
from orchestrator.dialogue.records import History, Shown
from orchestrator.dialogue.slots import SlotSource
from orchestrator.dialogue.specification import FlowSpec
from orchestrator.dialogue.state import DialogueState
from orchestrator.dialogue.tables import ShownTable
from orchestrator.domain.locales import ENGLISH_SEPARATORS, Separators
from orchestrator.memory.context_coordinator import ContextCoordinator
from orchestrator.types import Json

_RECENT_COMPLETED = 3


@dataclass(frozen=True, slots=True)
class PastFlow:
    """An interrupted flow, or a flow completed in this session."""

    spec: FlowSpec
    values: Mapping[str, Json] = field(default_factory=dict[str, Json])
    outputs: Mapping[str, Json] = field(default_factory=dict[str, Json])


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """An open question to the user, or no question (`NOTHING_ASKED`).

    `slot`: the requested slot. `confirming`: True if a yes or no is expected. `options`: suggested replies,
    which a message can name. `words`: the question's text.
    """

    slot: str | None = None
    confirming: bool = False
    options: tuple[Option, ...] = ()
    words: str = ""

    @property
    def is_open(self) -> bool:
        return self.slot is not None or self.confirming or bool(self.options)

    @property
    def choices(self) -> list[tuple[str, str]]:
        """Return the options, each as its label and its value or slot."""
        return [(str(option.label), _value_of(option)) for option in self.options]


NOTHING_ASKED = OpenQuestion()
NOTHING_SAID = ContextCoordinator(History())


@dataclass(frozen=True, slots=True)
class NluContext:
    """The session data that NLU uses.

    `values`: the active flow's values. `completed`: the last completed flows, latest first. `previous`: the
    user's previous message. `recent`: the slots of the active flow that the user filled last. `shown`: the
    rows displayed last. `table`: the table displayed last. `own`: values that exist only in this session, by
    entity. `plan`: the running plan. `tasks`: flows in progress, the active flow last. `history`: the
    conversation, for prompts. `separators`: the user's number format.
    """

    today: date
    active: FlowSpec | None = None
    values: Mapping[str, Json] = field(default_factory=dict[str, Json])
    question: OpenQuestion = NOTHING_ASKED
    interrupted: tuple[PastFlow, ...] = ()
    completed: tuple[PastFlow, ...] = ()
    previous: str = ""
    own: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])
    plan: PlanFlow | None = None
    tasks: tuple[BaseFlow, ...] = ()
    history: ContextCoordinator = NOTHING_SAID
    recent: frozenset[str] = frozenset()
    shown: Shown | None = None
    table: ShownTable | None = None
    separators: Separators = ENGLISH_SEPARATORS

    @property
    def asks_for_text(self) -> bool:
        """Return whether the open question asks for free text, which any message can be."""
        slot = None if self.active is None else self.active.slots.get(self.question.slot or "")
        return slot is not None and slot.is_free_text

    @property
    def intent(self) -> str | None:
        return None if self.active is None else self.active.intent


def read_nlu_context(
    state: DialogueState, now: float, separators: Separators = ENGLISH_SEPARATORS
) -> NluContext:
    """Return the NLU context for a dialogue state. `now`: Unix seconds, shifted to the user's time zone."""
    stack, active = state.stack, state.stack.top
    latest = reversed(state.completed[-_RECENT_COMPLETED:])
    return NluContext(
        today=day_of(now),
        active=None if active is None else active.spec,
        values={} if active is None else values_of(active),
        recent=frozenset() if active is None else _given_last(active),
        shown=state.find_rows(active),
        table=state.table,
        question=_read_question(state, active),
        interrupted=tuple(
            PastFlow(flow.spec, values_of(flow)) for flow in stack.flows if flow.status == INTERRUPTED
        ),
        completed=tuple([PastFlow(flow.spec, values_of(flow), flow.outputs) for flow in latest]),
        previous=state.history.last_said("user"),
        own=state.intake.entities,
        plan=stack.plan,
        tasks=tuple(stack.flows),
        history=ContextCoordinator(state.history),
        separators=separators,
    )


def _given_last(flow: BaseFlow) -> frozenset[str]:
    said = {name: held.turn_id for name, held in flow.slots.items() if held.source is SlotSource.USER}
    last = next((turn_id for turn_id in reversed(flow.turn_ids) if turn_id in said.values()), None)
    return frozenset(name for name, turn_id in said.items() if turn_id == last)


def _read_question(state: DialogueState, active: BaseFlow | None) -> OpenQuestion:
    current = state.ambiguity.current
    approving = active is not None and any(one.flow_id == active.flow_id for one in state.approvals)
    if current is None:
        return OpenQuestion(confirming=approving)
    if current.level is Level.CONFIRMATION:
        return OpenQuestion(confirming=True, words=current.words)
    return OpenQuestion(current.slot, approving, current.options, words=current.words)


def _value_of(option: Option) -> str:
    """Return the value or slot behind an option, because users can name either."""
    return str(option.payload.get("value", option.payload.get("slot", "")))


def values_of(flow: BaseFlow) -> dict[str, Json]:
    return {name: held.value for name, held in flow.slots.items()}


def day_of(now: float) -> date:
    """Return the UTC day of a Unix time in seconds."""
    return datetime.fromtimestamp(now, UTC).date()
