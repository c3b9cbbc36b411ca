"""The judge can fail: take one rule out of the Agent, and it says what went wrong.

Each plants one bug, lets users meet it, and compares with the same users where the rule holds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

import pytest

from orchestrator.agent.messages import confirmation, correction
from orchestrator.dialogue.understanding import MessageKind
from orchestrator.nlu.readers import references
from orchestrator.pex.calls import consent
from tests.goals.conversations import Fault, converse_all
from tests.goals.goal import Wish
from tests.goals.grammar import Grammar, Half
from tests.goals.readers import Reader
from tests.goals.worlds import open_world
from tests.goals.worlds.travel import Travel
from tests.goals.worlds.travel_goals import invent_wish

dispatch = sys.modules["orchestrator.agent.steps.dispatch"]  # its package exports the function of that name
Plant = Callable[[pytest.MonkeyPatch], None]
CONVERSATIONS = 12


class Staged(Travel):
    """Travellers who all want the same kind of thing, with the same twists on the way."""

    def __init__(self, grammar: Grammar, kind: str, twists: tuple[tuple[str, str], ...]) -> None:
        super().__init__(grammar)
        self._kind = kind
        self._twists = twists

    async def invent_goal(self, chance: Random) -> list[Wish]:
        wish = await invent_wish(self._kind, chance)
        wish.twists = list(self._twists)
        return [wish]


@dataclass(frozen=True)
class Planted:
    """A rule that is taken out, the users who meet it, and what the judge has to find."""

    rule: str
    plant: Plant
    fault: Fault
    twists: tuple[tuple[str, str], ...]
    kind: str = "book"
    reader: Reader = Reader.RIGHT


def forget_the_candidate(patch: pytest.MonkeyPatch) -> None:
    """A click is taken for a yes to whatever is open."""
    patch.setattr(dispatch, "_is_over", lambda turn, understood: False)


def take_any_words_for_a_yes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(confirmation, "is_plain", lambda turn, understood: True)


def keep_a_yes_for_other_values(patch: pytest.MonkeyPatch) -> None:
    """A candidate stands whatever becomes of the values that it was made from."""
    patch.setattr(consent, "fingerprint", lambda state, flow, tool_id, arguments: flow.flow_id)
    patch.setattr(correction, "drop_stale_candidate", lambda turn, flow, labels: None)


def pass_over_what_is_done(patch: pytest.MonkeyPatch) -> None:
    """A correction does not look at what was booked with the old value."""
    patch.setattr(correction, "_effects_made_from", lambda turn, flow, labels: [])


def take_the_first_row(patch: pytest.MonkeyPatch) -> None:
    """Whatever row is meant, it is the first one."""
    meant = references.find_reference

    def first(message: references.Message) -> references.Reference | None:
        found = meant(message)
        return found and replace(found, rows=list(message.shown.rows[:1]))

    patch.setattr(references, "find_reference", first)


def do_not_stop(patch: pytest.MonkeyPatch) -> None:
    handlers = dict(dispatch._HANDLERS)
    handlers[MessageKind.CANCELLATION] = handlers[MessageKind.CHITCHAT]
    patch.setattr(dispatch, "_HANDLERS", handlers)


def leave_the_plan_as_it_was(patch: pytest.MonkeyPatch) -> None:
    """A corrected step does not tell its plan."""
    patch.setattr(correction, "follow_correction", lambda context, flow, changed: False)


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
        kind="pick",
        reader=Reader.SYSTEM1,
    ),
    Planted("stop is stop", do_not_stop, Fault.DEAD_END, (("question", "stop"), ("offer", "stop"))),
    Planted(
        "a plan's values are its steps'",
        leave_the_plan_as_it_was,
        Fault.DEAD_END,
        (("offer", "correct"),),
        kind="trip",
    ),
)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.rule)
async def test_a_planted_bug_is_caught(bug: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    _, loaded, system1 = open_world("travel", Grammar("travel", Half.SEEN))
    world = Staged(Grammar("travel", Half.SEEN), bug.kind, bug.twists)
    seeds = range(CONVERSATIONS)

    sound = await converse_all(world, loaded, system1, bug.reader, seeds)
    bug.plant(monkeypatch)
    spoilt = await converse_all(world, loaded, system1, bug.reader, seeds)

    assert spoilt.count(bug.fault) > sound.count(bug.fault), f"{bug.fault} without “{bug.rule}” is not seen"
