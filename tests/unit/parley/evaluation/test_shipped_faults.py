"""The shipped domains bear what goes wrong in their conversations (`make faults-conversations` takes all of it)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter

import pytest
import yaml

from domains.analytics.language.request import Request
from orchestrator.domain.evaluations import EvaluationFile
from orchestrator.types import Json
from parley.evaluation.domains import find_conversations
from parley.evaluation.faults.cases import read_case, write_case
from parley.evaluation.faults.judge import Breach
from parley.evaluation.faults.running import Workers
from parley.evaluation.faults.search import Search, Share, look_everywhere, try_case
from parley.evaluation.faults.sound import Sounds
from tests.trained import trained

SHIPPED = ("travel", "analytics")
SOME = 20
"""Cases of every twenty-fourth conversation."""


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
- name: what is answered beside a turn was read before the turn's own question
  turns:
    - {user: Book a business flight from Bergen to Nice tomorrow for 2 people}
    - {user: yes please, faults: {time_out: every timetable.update, interjected: 'before flight_book: help'}}
"""
BORNE_OF_TABLES = """
- name: a user who sees another table does not save it
  turns:
    - {user: show Japanese cars where horsepower is over 100, faults: {nonsense: 'query {"table":"airports"}'}}
    - {user: save this as fast cars}
- name: what is displayed last is saved
  turns:
    - {user: average horsepower by origin}
    - {user: save them as thrifty, faults: {aside: show Japanese cars where horsepower is over 100}}
- name: what is displayed last is narrowed and saved
  turns:
    - {user: only the Japanese ones, faults: {aside: show Japanese cars where horsepower is over 100}}
    - {user: save them as thrifty}
- name: what displays nothing leaves what is displayed
  turns:
    - {user: average horsepower by origin}
    - {user: 'what about Europe?', faults: {nonsense: 'query {"other_table": "san_francisco"}'}}
    - {user: save them as thrifty}
- name: who sees another table asks for theirs before they narrow it
  turns:
    - {user: average horsepower by origin}
    - {user: only the Japanese ones, faults: {nonsense: 'query {"table": "iris"}'}}
    - {user: save them as thrifty}
- name: an offer names the table that it makes
  turns:
    - user: merge seattle with san francisco on date
      faults: {nonsense: 'merge {"table": "seattle", "other_table": "san_francisco", "key": "date", "new_name": "x"}'}
    - {user: 'yes'}
"""
"""Each was held to be wrong, and is not."""


@pytest.mark.parametrize(("domain", "borne"), [("travel", BORNE), ("analytics", BORNE_OF_TABLES)])
def test_what_a_user_brings_about_is_no_breach(domain: str, borne: str) -> None:
    kept = EvaluationFile.model_validate({"conversations": yaml.safe_load(borne)}).conversations
    sounds = Sounds(Workers(domain, trained(domain)[1]))

    for conversation in kept:
        findings, heard = asyncio.run(try_case(sounds, read_case(conversation.name, conversation)))
        assert findings == [], conversation.name
        assert heard


SAVED_AFTER_ANOTHER = """
- name: them
  turns:
    - {user: average horsepower by origin}
    - {user: save them as thrifty, faults: {aside: show Japanese cars where horsepower is over 100}}
"""


@pytest.mark.parametrize(
    "is_mixed", [False, True], ids=["an older table", "with an argument of an older one"]
)
def test_what_is_saved_as_nobody_has_seen_it_is_found(
    is_mixed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who says "save them" means what they see, whatever was displayed in the conversation without the fault."""
    rightly = attrgetter("_take_part")(Request)

    def take_another(request: Request, slots: Mapping[str, Json]) -> dict[str, Json]:
        older = replace(request.heard, completed=request.heard.completed[::-1])
        taken = rightly(replace(request, heard=older), slots)
        if is_mixed:
            return {"question": {**taken["question"], **rightly(request, slots)["question"]}}
        return taken

    monkeypatch.setattr(Request, "_take_part", take_another)
    kept = EvaluationFile.model_validate(
        {"conversations": yaml.safe_load(SAVED_AFTER_ANOTHER)}
    ).conversations[0]

    findings, _ = asyncio.run(
        try_case(Sounds(Workers("analytics", trained("analytics")[1])), read_case("them", kept))
    )

    assert [one.breach for one in findings] == [Breach.UNASKED]
