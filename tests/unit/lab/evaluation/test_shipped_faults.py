"""The shipped domains tolerate faults in their conversations (`make faults-conversations` runs all cases)."""

from __future__ import annotations

import asyncio

import pytest
import yaml

from lab.domain_evaluation import find_conversations
from lab.faults.cases import read_case, write_case
from lab.faults.running import Workers
from lab.faults.search import Search, Share, look_everywhere, try_case
from lab.faults.sound import Sounds
from orchestrator.domain.evaluations import EvaluationFile
from tests.trained import trained

SHIPPED = ("travel", "analytics")
SOME = 20
"""Number of cases for every 24th conversation."""


def search(domain: str, *, every: int = 1, seed: int = 0, budget: int = 1500) -> Search:
    found = find_conversations(domain)
    assert found is not None
    named = {f"{file}: {one.name}": one for file, some in found[1].items() for one in some if one.turns}
    sound = {name: one for name, one in named.items() if not any(turn.faults for turn in one.turns)}
    return Search(
        Workers(domain, trained(domain)[1]),
        {name: sound[name] for name in [*sound][seed % every :: every]},
        seed,
        budget,
    )


def broken(share: Share) -> list[str]:
    return [f"{one.finding.why}\n{write_case(one)}" for one in share.found.values()]


@pytest.mark.parametrize("domain", SHIPPED)
def test_a_shipped_domain_bears_some_of_what_goes_wrong(domain: str) -> None:
    share = asyncio.run(search(domain, every=24, seed=4, budget=SOME).look())

    assert broken(share) == []
    assert share.taken == SOME


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("domain", SHIPPED)
def test_a_shipped_domain_bears_what_goes_wrong(domain: str, seed: int) -> None:
    whole = search(domain, seed=seed)
    share = look_everywhere(whole)

    print(f"{domain}, seed {seed}: {share.taken} cases, {len(share.found)} findings; {share.by_kind}")
    assert broken(share) == []
    assert share.taken == whole.budget


BORNE = """
- name: a user who has said no to another try has half a booking, and asks for a whole one
  turns:
    - {user: Book a business flight from Bergen to Nice tomorrow for 2 people}
    - {user: yes please, faults: {time_out: every bookings.update, stale_click: deny of turn 1}}
- name: what is half cancelled cannot be cancelled again
  turns:
    - {user: Book a flight from Oslo to Madrid tomorrow}
    - {user: 'yes'}
    - {user: cancel my booking}
    - {user: 'yes', faults: {stale_click: deny of turn 3, worker_death: after bookings.update}}
- name: what is asked besides may write a document of its own, although its answer is lost
  turns:
    - {user: tomorrow, faults: {lost_answer: timetable.create, aside: search flights from Bergen to Nice tomorrow}}
- name: a user reads what is offered after a never mind
  turns:
    - {user: Book a flight from Oslo to Madrid tomorrow}
    - {user: 'no, make it business', faults: {nonsense: modify_booking}}
    - {user: 'yes', faults: {aside: never mind}}
- name: a message that was stopped is stopped when it comes again
  turns:
    - {user: check booking PX7K2M, faults: {interrupted: before booking_list, doubled: by its key}}
- name: what is offered once more is no stale click
  turns:
    - {user: Book a flight from Oslo to Madrid tomorrow}
    - {user: 'no, make it business', faults: {nonsense: a yes, stale_click: confirm of turn 1}}
- name: a user says no to an offer that a model alone has made
  turns:
    - user: Book a flight from Oslo to Madrid tomorrow
      faults: {nonsense: 'book_flight {"origin": "OSL", "destination": "MAD", "date": "2026-11-21", "passengers": 7}'}
    - {user: 'yes'}
- name: an offer names the time of day that has narrowed it
  turns:
    - user: Book a flight from Oslo to Madrid
      faults: {nonsense: 'book_flight {"origin": "OSL", "destination": "MAD", "time_of_day": "afternoon"}'}
    - {user: tomorrow}
"""


def test_what_a_user_brings_about_is_no_breach() -> None:
    kept = EvaluationFile.model_validate({"conversations": yaml.safe_load(BORNE)}).conversations
    sounds = Sounds(Workers("travel", trained("travel")[1]))

    for conversation in kept:
        findings, heard = asyncio.run(try_case(sounds, read_case(conversation.name, conversation)))
        assert findings == [], conversation.name
        assert heard
