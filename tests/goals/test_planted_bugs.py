"""The goal judge detects errors: if a rule of the Agent is removed, it reports what went wrong.

Each test plants one bug, simulates users that meet it, and compares them with the same users without the bug.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from lab.goals.conversations import Fault, Figures, converse_all
from lab.goals.goal import Wish
from lab.goals.grammar import Grammar, Half
from lab.goals.readers import Reader
from lab.goals.worlds import open_world
from lab.goals.worlds.travel import Travel
from lab.goals.worlds.travel_goals import invent_wish
from orchestrator.agent import replanning, tasks
from orchestrator.agent.corrections import completed, flows, settling
from orchestrator.agent.messages import answers
from orchestrator.context import TurnContext
from orchestrator.dialogue import consent as dialogue_consent
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.records import Shown
from orchestrator.dialogue.state import DialogueState
from orchestrator.dialogue.understanding import MessageKind
from orchestrator.nlu.system1 import references
from orchestrator.pex.calls import consent
from orchestrator.plans import changes, recipe
from orchestrator.plans.policy import PlanPolicy

dispatch = sys.modules["orchestrator.agent.steps.dispatch"]  # its package exports the function with that name
Plant = Callable[[pytest.MonkeyPatch], None]


class Staged(Travel):
    """Travelers who all want the same kinds of things, with the same surprises before the first."""

    def __init__(self, grammar: Grammar, bug: Planted) -> None:
        super().__init__(grammar)
        self._bug = bug

    async def invent_goal(self, chance: Random) -> list[Wish]:
        wishes = [await invent_wish(kind, chance) for kind in self._bug.kinds]
        wishes[0].twists = list(self._bug.twists)
        for wish in wishes:
            wish.choice = self._bug.choice or wish.choice
        return wishes


@dataclass(frozen=True)
class Planted:
    """A removed rule, the users who meet it, and the findings that the judge must report."""

    rule: str
    plant: Plant
    fault: Fault | None
    """Expected findings, empty for bugs without wrong actions or goals: users reject the offer, and need
    longer.
    """
    twists: tuple[tuple[str, str], ...] = ()
    kinds: tuple[str, ...] = ("book",)
    choice: str = ""
    reader: Reader = Reader.RIGHT
    half: Half = Half.SEEN
    conversations: int = 30
    """Number of simulated users, at least one of whom runs into the bug."""
    likely: int = 0
    """The user who is tried first, because this one has run into the bug before."""


def forget_the_candidate(patch: pytest.MonkeyPatch) -> None:
    """Plant a bug: a click counts as a yes to whatever is open."""
    patch.setattr(dispatch, "_is_over", lambda turn, understood: False)


def take_any_words_for_a_yes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(answers, "is_plain", lambda understood: True)


def name_no_words(patch: pytest.MonkeyPatch) -> None:
    """Plant a bug: unknown words are dropped silently."""
    tell = TurnContext.tell

    def tell_others(context: TurnContext, kind: NoticeKind, **details: Any) -> None:
        if kind is not NoticeKind.NOT_UNDERSTOOD:
            tell(context, kind, **details)

    patch.setattr(TurnContext, "tell", tell_others)


def keep_a_yes_for_other_values(patch: pytest.MonkeyPatch) -> None:
    """Plant a bug: a pending offer remains although its values change."""
    for module in (consent, dialogue_consent):
        patch.setattr(module, "fingerprint", lambda state, flow, *call, again: f"{flow.flow_id} {again}")
    for module in (flows, tasks):
        patch.setattr(module, "drop_stale_candidate", lambda turn, flow, labels: None)


def pass_over_what_is_done(patch: pytest.MonkeyPatch) -> None:
    """Plant a bug: a correction ignores the booking with the old value."""
    patch.setattr(flows, "effects_made_from", lambda turn, flow, labels: [])


def take_the_first_row(patch: pytest.MonkeyPatch) -> None:
    """Plant a bug: every reference means the first row."""
    meant = references.find_reference

    def first(message: references.Message) -> references.Reference | None:
        found = meant(message)
        return found and replace(found, rows=list(message.shown.rows[:1]))

    patch.setattr(references, "find_reference", first)


def take_the_row_below(patch: pytest.MonkeyPatch) -> None:
    """Plant a bug: ordinals count from zero."""
    patch.setattr(references, "ORDINALS", {word: place + 1 for word, place in references.ORDINALS.items()})


def hear_no_times(patch: pytest.MonkeyPatch) -> None:
    """Plant a bug: times don't identify rows."""
    patch.setattr(references, "find_times", lambda utterance: [])
    patch.setattr(references, "_places_of", lambda message, value: set())


def keep_the_first_list(patch: pytest.MonkeyPatch) -> None:
    """Plant a bug: references mean the rows displayed first, regardless of later rows."""
    show = DialogueState.note_shown

    def note_first(state: DialogueState, rows: Shown) -> None:
        show(state, state.shown or rows)

    patch.setattr(DialogueState, "note_shown", note_first)


def adopt_whatever_waits(patch: pytest.MonkeyPatch) -> None:
    """Plant a bug: a plan adopts a waiting flow with any values."""
    patch.setattr(changes, "agrees", lambda plan, step, flow: True)


def take_whatever_is_done(patch: pytest.MonkeyPatch) -> None:
    """Plant a bug: a plan adopts a separate booking with any values."""
    patch.setattr(recipe, "same_value", lambda one, other: True)


def trust_what_is_done(patch: pytest.MonkeyPatch) -> None:
    """Plant a bug: results of completed steps are not checked against the plan."""
    patch.setattr(settling, "find_outdated", lambda plan, effects: {})
    patch.setattr(flows, "effects_made_from", lambda turn, flow, labels: [])


def leave_the_stack_as_it_was(patch: pytest.MonkeyPatch) -> None:
    """Plant a bug: a changed plan does not push its steps again."""
    patch.setattr(completed, "stack_plan", lambda context, plan: None)
    patch.setattr(replanning, "stack_plan", lambda context, plan: None)


def tell_a_part_as_the_whole(patch: pytest.MonkeyPatch) -> None:
    """Plant a bug: a plan with a step that the user skipped ends like a complete plan."""
    patch.setattr(PlanPolicy, "_report_omissions", lambda policy, run, plan: None)


def do_not_stop(patch: pytest.MonkeyPatch) -> None:
    handlers = dict(dispatch.MESSAGES)
    handlers[MessageKind.CANCELLATION] = handlers[MessageKind.CHITCHAT]
    patch.setattr(dispatch, "MESSAGES", handlers)


def leave_the_plan_as_it_was(patch: pytest.MonkeyPatch) -> None:
    """Plant a bug: a corrected step does not update its plan."""
    patch.setattr(flows, "follow_correction", lambda context, flow, changed: False)


BUGS = (
    Planted("a yes names its candidate", forget_the_candidate, Fault.WRONG_DEED, (("offer", "made_up"),)),
    Planted(
        "an older yes is over",
        forget_the_candidate,
        Fault.WRONG_DEED,
        (("offer", "correct"), ("offer", "stale")),
    ),
    Planted(
        "a yes is for the values that were shown",
        keep_a_yes_for_other_values,
        Fault.WRONG_DEED,
        (("offer", "correct"), ("offer", "stale")),
    ),
    Planted(
        "only a plain yes is one",
        take_any_words_for_a_yes,
        Fault.WRONG_DEED,
        (("offer", "hedge"),),
        reader=Reader.WRONG,
        likely=28,
    ),
    Planted(
        "what resembles a yes is none",
        take_any_words_for_a_yes,
        Fault.WRONG_DEED,
        (("offer", "near_yes"),),
        reader=Reader.SYSTEM1,
    ),
    Planted(
        "a model's yes is none",
        take_any_words_for_a_yes,
        Fault.WRONG_DEED,
        (("offer", "near_yes"),),
        reader=Reader.YES,
    ),
    Planted(
        "one word makes a yes",
        take_any_words_for_a_yes,
        Fault.WRONG_DEED,
        (("offer", "near_pair"),),
        reader=Reader.YES,
    ),
    Planted(
        "dropped words are named",
        name_no_words,
        Fault.WRONG_DEED,
        (("offer", "hasty"),),
        reader=Reader.SYSTEM1,
        half=Half.BLIND,
    ),
    Planted(
        "corrections look at effects",
        pass_over_what_is_done,
        Fault.LOST,
        (("done", "correct"),),
        reader=Reader.SYSTEM1,
    ),
    Planted(
        "the row that is meant is taken",
        take_the_first_row,
        Fault.DEAD_END,
        (),
        kinds=("pick",),
        reader=Reader.SYSTEM1,
    ),
    Planted(
        "ordinals count from one",
        take_the_row_below,
        None,
        kinds=("pick",),
        choice="ordinal",
        reader=Reader.SYSTEM1,
    ),
    Planted(
        "rows have times",
        hear_no_times,
        Fault.DEAD_END,
        kinds=("pick",),
        choice="time",
        reader=Reader.SYSTEM1,
        conversations=11,
    ),
    Planted(
        "the last list counts",
        keep_the_first_list,
        None,
        kinds=("pick", "pick"),
        choice="ordinal",
        reader=Reader.SYSTEM1,
    ),
    Planted(
        "a plan adopts what agrees",
        adopt_whatever_waits,
        Fault.UNTRUE,
        (("offer", "switch"),),
        kinds=("book", "trip"),
    ),
    Planted(
        "what is done serves a plan it agrees with",
        take_whatever_is_done,
        Fault.DEAD_END,
        kinds=("book", "trip"),
    ),
    Planted(
        "what is done agrees with the plan",
        trust_what_is_done,
        Fault.UNTRUE,
        (("offer", "nothing"), ("offer", "correct")),
        kinds=("trip",),
    ),
    Planted(
        "a changed plan is stacked anew",
        leave_the_stack_as_it_was,
        Fault.DEAD_END,
        (("offer", "nothing"), ("offer", "correct")),
        kinds=("trip",),
    ),
    Planted(
        "a part is told as a part",
        tell_a_part_as_the_whole,
        Fault.UNTRUE,
        (("offer", "nothing"), ("offer", "stop")),
        kinds=("trip",),
        conversations=40,
    ),
    Planted("stop is stop", do_not_stop, Fault.DEAD_END, (("question", "stop"), ("offer", "stop"))),
    Planted(
        "a plan's values are its steps'",
        leave_the_plan_as_it_was,
        Fault.DEAD_END,
        (("offer", "correct"),),
        kinds=("trip",),
    ),
)


SHORT = {
    "a yes names its candidate",
    "a yes is for the values that were shown",
    "only a plain yes is one",
    "dropped words are named",
    "corrections look at effects",
    "the row that is meant is taken",
    "what is done agrees with the plan",
    "stop is stop",
}
"""A bug of each kind: consent, words, effects, rows, plans and cancellation. The other bugs are marked `slow`."""


def in_short() -> list[ParameterSet]:
    assert {bug.rule for bug in BUGS} > SHORT
    return [
        pytest.param(bug, id=bug.rule, marks=[] if bug.rule in SHORT else [pytest.mark.slow]) for bug in BUGS
    ]


@pytest.mark.parametrize("bug", in_short())
async def test_a_planted_bug_is_caught(bug: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    grammar = Grammar("travel", bug.half)
    _, loaded, system1 = open_world("travel", grammar)
    world = Staged(grammar, bug)

    for seed in (bug.likely, *range(bug.conversations)):
        sound = await converse_all(world, loaded, system1, bug.reader, (seed,))
        with monkeypatch.context() as planted:
            bug.plant(planted)
            spoilt = await converse_all(world, loaded, system1, bug.reader, (seed,))
        if harm(spoilt, bug.fault) > harm(sound, bug.fault):
            return
    pytest.fail(f"{bug.fault} without “{bug.rule}” is not seen")


def harm(figures: Figures, fault: Fault | None) -> int:
    return figures.count(fault) if fault is not None else sum(one.turns for one in figures.verdicts)
