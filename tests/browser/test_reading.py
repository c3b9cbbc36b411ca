"""Contents of the panels: plans, runs, epochs, replays, events (PL-6, IF-16, ST-2)."""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from orchestrator.types import DEFAULT_TENANT
from tests.browser.steps import Visit
from tests.processes.forked import run

TRAVEL = Path(__file__).parents[2] / "domains" / "travel"
TRIP = ("plan a weekend in Lisbon for two under 1200 euros", "Oslo")
TO_MADRID = ("I want to fly to Madrid", "from Oslo", "actually to Rome")


def test_a_plan_shows_its_steps_its_progress_and_its_revisions(visit: Callable[..., Visit]) -> None:
    """PL-6"""
    here = visit().new_session("travel")
    plan = here.panel("Plan")
    expect(plan).to_contain_text("There is no plan.")
    here.seed(*TRIP[:-1])
    expect(here.turns).to_have_count(len(TRIP) - 1)
    here.say(TRIP[-1], "Shall I book it")

    told = here.api.get(f"/v1/sessions/{here.session_id}/plan").json()
    progress = plan.get_by_role("progressbar", name="Plan progress")
    expect(progress).to_have_attribute("aria-valuenow", str(told["completed"]))
    expect(progress).to_have_attribute("aria-valuemax", str(told["total"]))
    steps = plan.get_by_role("list", name="Steps").locator("> li .what")
    expect(steps).to_have_text([re.compile(step["purpose"], re.IGNORECASE) for step in told["steps"]])
    revisions = plan.get_by_role("region", name="Revisions").locator("> ol > li")
    expect(revisions).to_have_count(len(told["revisions"]))
    expect(revisions.first).to_contain_text(told["progress"])
    here.choose("Yes", "Booked")
    expect(progress).to_have_attribute("aria-valuenow", str(told["completed"] + 1))


@pytest.mark.slow
def test_the_top_flow_is_drawn_with_the_place_where_it_is(visit: Callable[..., Visit]) -> None:
    here = visit().new_session("travel", "I want to fly to Madrid")
    course = here.panel("Stack").get_by_role("img", name="Book flight: step 1 of 6, Origin")
    expect(course.locator(".done")).to_have_text("Destination: MAD")
    question = here.page.get_by_role("region", name="Open question")
    expect(question).to_contain_text("Where would you like to fly from?")

    here.say("from Oslo", "day")
    expect(here.page.get_by_role("img", name="Book flight: step 3 of 6, Date")).to_be_visible()
    here.say("tomorrow", "Shall I book it")
    here.expect_stack("Book flight.*Active")
    asked = here.page.get_by_role("img", name="Book flight: step 5 of 6, Confirmation")
    expect(asked.locator(".here")).to_have_text("Confirmation")
    expect(asked.locator(".open")).to_have_text("Flight book")


@pytest.mark.slow
def test_a_turn_shows_why_it_became_its_flow_and_its_course(visit: Callable[..., Visit]) -> None:
    """CO-6: the component that interpreted the message, the candidate flows, and the timeline."""
    here = visit().new_session("travel")
    panel = here.panel("Turn")
    expect(panel).to_contain_text("No turn yet")
    here.say("I want to fly to Madrid", "fly from")

    why = panel.get_by_role("region", name="Why this flow")
    expect(why).to_contain_text("Read by")
    expect(why.get_by_role("list", name="Candidates").locator("li").first).to_contain_text("Book flight")
    expect(why).to_contain_text(re.compile("Unexplained ?none"))
    course = panel.get_by_role("list", name="Timeline").locator("> li")
    expect(course.first).to_contain_text(re.compile(r"after \d"))
    (first,) = here.api.get(f"/v1/sessions/{here.session_id}/turns").json()
    expect(course).to_have_count(len(here.api.get(f"/v1/turns/{first['turn_id']}/journal").json()["signals"]))

    here.say("from Oslo", "day")
    expect(panel.get_by_label("Turn", exact=True).locator("option").first).to_have_text("#2 from Oslo")
    panel.get_by_label("Turn", exact=True).select_option(label="#1 I want to fly to Madrid")
    expect(why.get_by_role("list", name="Candidates").locator("li").first).to_contain_text("Book flight")


@pytest.mark.slow
def test_a_turn_becomes_a_test_case_that_runs(visit: Callable[..., Visit], tmp_path: Path) -> None:
    """`parley eval` reads the file without changes."""
    here = visit().new_session("travel", "I want to fly to Madrid")
    here.say("from Oslo", "day")
    panel = here.panel("Turn")
    panel.get_by_role("button", name="Make a test case").click()
    shown = panel.get_by_role("region", name="Test case as YAML")
    expect(shown).to_contain_text("user: from Oslo")
    with here.page.expect_download() as downloading:
        panel.get_by_role("button", name="Download case_").click()
    folder = tmp_path / "trips"
    shutil.copytree(TRAVEL, folder, ignore=shutil.ignore_patterns("evaluations", "__pycache__"))
    (folder / "evaluations").mkdir()
    downloading.value.save_as(folder / "evaluations" / downloading.value.suggested_filename)

    evaluating = ("eval", str(folder), "--data-dir", str(tmp_path), "--fail-under", "1", "--json")
    ended = run(("-m", "parley", *evaluating), environment=os.environ)
    assert ended.returncode == 0, ended.stderr
    (outcome,) = json.loads(ended.stdout)["outcomes"]
    assert [turn["said"] for turn in outcome["turns"]] == ["I want to fly to Madrid", "from Oslo"]
    assert outcome["turns"][-1]["answer"] == "What day would you like to fly?"


@pytest.mark.slow
def test_the_words_that_nothing_explains_are_shown(visit: Callable[..., Visit]) -> None:
    here = visit().new_session("travel", "Book a flight from Oslo to Madrid tomorrow with a rollercoaster")
    expect(here.panel("Turn").get_by_role("region", name="Why this flow")).to_contain_text("rollercoaster")


@pytest.mark.slow
def test_what_a_model_was_asked_and_answered_is_shown(visit: Callable[..., Visit]) -> None:
    """CO-6: `up` stores prompts; each call of the turn shows its own prompt, with its tokens."""
    here = visit().new_session("gallery")
    here.say("tell me the story", "In room 16")
    call = here.panel("Turn").get_by_role("listitem").filter(has_text="Model call")
    expect(call).to_contain_text("tokens")
    call.get_by_text("Prompt", exact=True).click()
    expect(call.get_by_role("region", name="Prompt: system")).to_be_visible()
    call.get_by_text("Answer", exact=True).click()
    expect(call.get_by_role("region", name="Answer: assistant")).to_contain_text("In room 16")


@pytest.mark.slow
def test_memory_and_documents_are_shown_and_searched(visit: Callable[..., Visit]) -> None:
    """CO-4: memories of the session's user, and possible sources of its answers."""
    here = visit()
    user = f"user-{uuid.uuid4().hex[:8]}"
    wish = {
        "key": "*.seat_position",
        "kind": "rule",
        "source": "explicit",
        "value": "aisle",
        "text": "aisle please",
    }
    here.api.put(f"/v1/users/{user}/preferences", json={"preferences": [wish]}).raise_for_status()
    document = {
        "title": "Zeppelins",
        "text": "A zeppelin lands on the roof at noon.",
        "domain": "travel",
        "user_id": user,
    }
    here.api.post("/v1/documents", json=document).raise_for_status()
    made = here.api.post("/v1/sessions", json={"domain": "travel", "user_id": user})
    here.open(made.json()["session_id"])

    memory = here.panel("Memory").get_by_role("list", name="Preferences")
    expect(memory).to_contain_text("Seat position")
    expect(memory).to_contain_text("aisle please")
    documents = here.panel("Documents")
    expect(documents.get_by_role("region", name="Documents")).to_contain_text("Zeppelins")
    documents.get_by_role("searchbox", name="Search the documents").fill("when does the zeppelin land")
    documents.get_by_role("button", name="Find").click()
    expect(documents.get_by_role("region", name="Found")).to_contain_text("on the roof at noon")


@pytest.mark.slow
def test_evaluations_are_shown_beside_the_run_before(visit: Callable[..., Visit], folder: Path) -> None:
    """CO-6: the stored results of `parley eval`, with confusions and failed turns."""
    for name, figure, faults in (
        ("20260101-100000", 0.9, []),
        ("20260102-100000", 0.75, ["the flow is another"]),
    ):
        _keep_run(folder / "evaluations" / "travel" / f"{name}.json", name, figure, faults)
    panel = visit().new_session("travel").panel("Evaluations")

    runs = panel.get_by_role("region", name="Runs").locator("li.entry")
    expect(runs.first).to_contain_text("0.750 −0.150")
    runs.first.get_by_role("button").click()
    expect(panel.get_by_role("region", name="Misclassified flows")).to_contain_text(
        "Book flight was classified as"
    )
    expect(panel.get_by_role("region", name="Failed turns")).to_contain_text("the flow is another")


@pytest.mark.slow
def test_replays_are_shown_with_the_turns_that_came_out_otherwise(
    visit: Callable[..., Visit], folder: Path
) -> None:
    place = {"at": "1.arguments.origin", "then": "OSL", "now": "MAD"}
    turn = {"session": "one", "epoch": 3, "said": "book it", "allowed": False, "remembers": False}
    report = {
        "replay": "20260103-100000",
        "tenant_id": DEFAULT_TENANT,
        "domain": "travel",
        "made_at": "2026-01-03T10:00:00",
    }
    report |= {"by": {"domain": "next", "prompt": None, "model": None}, "sessions": 9, "turns": 30}
    report |= {"differing": 1, "changed": {"calls": 1}, "left_out": {"whose journal was pruned": 2}}
    path = folder / "evaluations" / "travel" / "replays" / "20260103-100000.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report | {"different": [turn | {"changes": {"calls": [place]}}]}))
    panel = visit().new_session("travel").panel("Replays")

    listed = panel.get_by_role("region", name="Replays").locator("li.entry").first
    expect(listed).to_contain_text("9 sessions, 30 turns, by domain next")
    expect(listed).to_contain_text("Whose journal was pruned")
    listed.get_by_role("button").click()
    shown = panel.get_by_role("region", name="Turns that differ")
    expect(shown).to_contain_text("book it")
    expect(shown.locator("del")).to_have_text("OSL")
    expect(shown.locator("ins")).to_have_text("MAD")


def _keep_run(path: Path, name: str, figure: float, faults: list[str]) -> None:
    turn = {"said": "book it", "read_by": "system1", "answer": "Which one?", "faults": faults}
    run = {
        "run": name,
        "tenant_id": DEFAULT_TENANT,
        "domain": "travel",
        "model": None,
        "name": "without a model",
        "made_at": "2026-01-02T10:00:00",
        "conversations": 1,
        "turns": 1,
        "figures": {"turns_as_expected": figure},
        "confusion": [{"expected": "book_flight", "taken": "find_flights", "turns": 1, "neighbors": True}],
        "outcomes": [{"conversation": "booking.yaml: one", "turns": [turn]}],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(run), encoding="utf-8")


@pytest.mark.slow
def test_sessions_are_searched(visit: Callable[..., Visit]) -> None:
    first, here = visit().new_session("travel"), visit().new_session("analytics")
    found = here.page.get_by_role("list", name="Recent sessions").get_by_role("button")
    search = here.page.get_by_role("searchbox", name="Search sessions")

    search.fill(first.session_id.upper())
    expect(found).to_have_count(1)
    search.fill(f"analytics {here.session_id[-8:]} open")
    expect(found).to_contain_text([here.session_id])
    search.fill("nothing is called so")
    expect(found).to_have_count(0)
    first.seed("I want to fly to Madrid")
    search.fill(f"fly to madrid {first.session_id[-8:]}")
    expect(found).to_have_text([re.compile("I want to fly to Madrid")])


@pytest.mark.slow
def test_stepping_back_shows_an_earlier_state_and_what_has_changed(visit: Callable[..., Visit]) -> None:
    """ST-2"""
    here = visit().new_session("travel", *TO_MADRID)
    here.expect_stack("Book flight.*Active")

    epochs = here.panel("Versions")
    epochs.get_by_role("button", name="Earlier").click()
    epochs.get_by_role("button", name="Earlier").click()
    expect(here.page.locator("#epoch-banner")).to_contain_text("Version 1 of 3")
    expect(epochs.locator(".changes")).to_contain_text("origin")
    expect(epochs.locator(".changes ins").first).to_be_visible()
    slots = here.panel("Stack").locator(".flow .pairs")
    expect(slots).to_contain_text("MAD")
    expect(slots).not_to_contain_text("OSL")

    here.page.locator("#epoch-banner").get_by_role("button", name="Back to now").click()
    expect(here.page.locator("#epoch-banner")).to_be_hidden()
    expect(slots).to_contain_text("OSL")


@pytest.mark.slow
def test_a_roll_back_asks_first_and_makes_a_new_epoch(visit: Callable[..., Visit]) -> None:
    here = visit().new_session("travel", "I want to fly to Madrid", "from Oslo")
    here.turns.first.get_by_role("button", name="Show the state after message 1").click()
    epochs = here.panel("Versions")

    epochs.get_by_role("button", name="Roll back to version 1").click()
    here.page.get_by_role("button", name="Cancel").click()
    assert here.api.get(f"/v1/sessions/{here.session_id}").json()["epoch"] == 2
    epochs.get_by_role("button", name="Roll back to version 1").click()
    here.page.get_by_role("dialog").get_by_role("button", name="Roll back").click()

    expect(epochs).to_contain_text("3 of 3")
    slots = here.panel("Stack").locator(".flow .pairs")
    expect(slots).to_contain_text("MAD")
    expect(slots).not_to_contain_text("OSL")


@pytest.mark.slow
def test_a_branch_goes_on_from_an_epoch_and_is_compared_with_its_parent(visit: Callable[..., Visit]) -> None:
    """ST-4"""
    here = visit().new_session("travel", "I want to fly to Madrid", "from Oslo")
    epochs, parent = here.panel("Versions"), here.session_id
    epochs.get_by_role("button", name="Earlier").click()
    epochs.get_by_role("button", name="Fork at version 1").click()

    expect(here.page.locator("#session-facts")).to_contain_text(f"fork of {parent}")
    expect(here.turns).to_have_count(1)
    expect(here.turns).to_contain_text("I want to fly to Madrid")
    here.say("from Rome", "day")
    expect(here.turns).to_have_count(2)
    branches = here.panel("Versions").get_by_role("region", name="Forks")
    branches.get_by_role("button", name="Compare").click()
    expect(branches).to_contain_text(f"the same up to version 1 of {parent}")
    expect(branches.locator(".entry")).to_have_count(1)
    expect(branches.locator(".entry")).to_contain_text(
        re.compile("said, flows.*from Rome.*from Oslo", re.DOTALL)
    )
    branches.get_by_role("button", name="Open parent").click()
    expect(here.page.locator("#app")).to_have_attribute("data-session", parent)
    expect(here.turns).to_have_count(2)


@pytest.mark.slow
def test_a_finished_session_is_played_again(visit: Callable[..., Visit]) -> None:
    here = visit().new_session("travel", "Book a flight from Oslo to Madrid tomorrow", "yes")
    here.api.delete(f"/v1/sessions/{here.session_id}")
    here.page.reload()
    expect(here.box).to_be_disabled()
    expect(here.turns).to_have_count(2)

    here.page.get_by_role("button", name="Replay").click()
    replay = here.page.get_by_role("region", name="Replay")
    expect(replay).to_contain_text("Before the first event")
    expect(here.turns).to_have_count(0)
    while "Answer" not in replay.locator(".step").inner_text():
        replay.get_by_role("button", name="One event forward").click()
    expect(here.turns).to_have_count(1)
    expect(here.turns.first).to_contain_text("Shall I book it")
    here.expect_stack("Book flight.*Active")

    replay.get_by_label("Speed").select_option("Fast")
    replay.get_by_role("button", name="Play", exact=True).click()
    here.answered(1, "Booked")
    expect(replay.get_by_role("button", name="Play", exact=True)).to_be_visible()
    expect(here.page.locator("#panel-stack")).to_contain_text("No flow is open")
    replay.get_by_role("button", name="End replay").click()
    expect(replay).to_be_hidden()
    expect(here.turns).to_have_count(2)


@pytest.mark.slow
def test_runs_are_a_graph_on_the_timeline(visit: Callable[..., Visit]) -> None:
    """IF-16"""
    here = visit().new_session("travel", "I want to fly to Madrid")
    body = {"flow": "summarize_session", "session_id": here.session_id}
    run_id = here.api.post("/v1/runs", json=body).json()["run_id"]
    here.page.reload()

    panel = here.panel("Runs")
    expect(panel.get_by_text("#1 I want to fly to Madrid")).to_be_visible()
    node = panel.get_by_role("button", name=re.compile("Summarize session"))
    expect(node).to_contain_text(re.compile("done|skipped|failed"))
    expect(panel.locator("path.edge")).to_have_count(1)
    node.click()
    details = panel.get_by_role("region", name="Run summarize_session")
    details.get_by_role("button", name="Run again").click()
    expect(panel.get_by_role("button", name=re.compile("Summarize session"))).to_have_count(2)
    expect(panel.locator("path.edge.again")).to_have_count(1)
    assert here.api.get(f"/v1/runs/{run_id}").json()["chain"][0] == run_id


@pytest.mark.slow
def test_events_are_listed_as_they_happen(visit: Callable[..., Visit]) -> None:
    """RT-15"""
    here = visit().new_session("travel")
    log = here.panel("Events")
    expect(log).to_contain_text("No events yet")
    here.say("Find flights from Oslo to Madrid tomorrow", "Madrid")

    kinds = log.locator(".log .type")
    expect(kinds.filter(has_text="Answer")).to_have_count(1)
    expect(kinds.filter(has_text="Accepted")).to_have_count(1)
    expect(log).to_contain_text("tool id: flight_search")
    expect(log.locator("time").last).to_have_text(re.compile(r"\d\d:\d\d:\d\d"))
    log.get_by_label("Type of events").select_option("Answer")
    expect(kinds).to_have_count(1)


@pytest.mark.slow
def test_a_deep_link_opens_session_panel_and_epoch(visit: Callable[..., Visit], address: str) -> None:
    here = visit().new_session("travel")
    here.seed("I want to fly to Madrid", "from Oslo")

    there = visit()
    there.page.goto(f"{address}/#session={here.session_id}&panel=epochs&epoch=1")

    expect(there.page.get_by_role("tab", name="Versions")).to_have_attribute("aria-selected", "true")
    expect(there.page.locator("#epoch-banner")).to_contain_text("Version 1 of 2")
