"""Whole conversations through the real pipeline with System 1, over in-memory stores.

Each YAML file contains conversations in the form of a domain's `evaluations/`, and its name begins with the
domain: ``travel.corrections.yaml``. Evaluations of shipped domains are run as well.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.evaluation.conversations import beginning_of, read_file, take_turns
from orchestrator.domain.evaluations import ConversationEntry, ExpectEntry
from parley.commands.domain import scaffold
from parley.simulator import Simulator
from tests.trained import simulate

HERE = Path(__file__).parent
DOMAINS = HERE.parents[1] / "domains"
FILES = [*sorted(HERE.glob("*.yaml")), *sorted(DOMAINS.glob("*/evaluations/*.yaml"))]
AT_LEAST = 60


def domain_of(path: Path) -> str:
    return path.parents[1].name if path.parent.name == "evaluations" else path.name.partition(".")[0]


def conversations(*domains: str) -> list[tuple[str, ConversationEntry]]:
    """Return each conversation with its domain. `domains`: selected domains. Default: all."""
    return [
        (domain_of(path), conversation)
        for path in FILES
        if not domains or domain_of(path) in domains
        for conversation in read_file(path).conversations
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{domain_of(path)} {path.stem}")
async def test_conversations_go_as_written(path: Path, subtests: pytest.Subtests) -> None:
    for conversation in read_file(path).conversations:
        with subtests.test(conversation.name):
            simulator = simulate(domain_of(path), sections=conversation.config, at=beginning_of(conversation))
            await go_through(conversation, simulator)


async def test_the_local_classifier_reads_what_is_refused_beside_an_offer() -> None:
    """A model reads these messages differently, so `travel.wordings.yaml` only lists what must not happen."""
    conversation = ConversationEntry.model_validate(
        {
            "name": "what is refused beside an offer",
            "turns": [
                {"user": "book a flight from oslo to paris on 28 november"},
                {
                    "user": "too early for me",
                    "expect": {"completed": ["search_flights"]},
                },
                {"user": "don't book it", "expect": {"kind": "denial", "tools": []}},
            ],
        }
    )
    simulator = simulate("travel", at=beginning_of(conversation))
    await go_through(conversation, simulator)


async def go_through(conversation: ConversationEntry, simulator: Simulator) -> None:
    """Run all turns of a conversation, and check for deviations."""
    for number, turn in enumerate(await take_turns(conversation, simulator), start=1):
        assert not turn.faults, (
            f"{conversation.name}, turn {number}, {turn.said}: {turn.faults}\nreply: {turn.observed['answer']}"
        )


def test_there_are_enough_conversations() -> None:
    """Each message kind, depth strategy, ambiguity level and digression needs its own conversations."""
    names = [(path, conversation.name) for path in FILES for conversation in read_file(path).conversations]
    assert len(names) == len(set(names))
    assert len(names) >= AT_LEAST


def test_every_conversation_expects_something() -> None:
    for path in FILES:
        for conversation in read_file(path).conversations:
            assert any(turn.expect != ExpectEntry() for turn in conversation.turns), conversation.name


async def test_a_search_without_results_says_that_it_found_nothing(tmp_path: Path) -> None:
    """RS-3: the base template does not repeat the request as an answer."""
    talk = Simulator.of(scaffold("notes", tmp_path)).converse()
    turn = await talk.say("show my notes about home")
    assert (turn["completed"], turn["reply"]) == (["list_notes"], "I found nothing that matches.")
