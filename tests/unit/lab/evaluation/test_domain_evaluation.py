"""`parley eval DOMAIN` and `parley explain`: a domain measured on its conversations, with the real Agent."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lab.evaluation.outside import list_services
from lab.evaluation.rubric import grade_answer
from orchestrator.adapters.domains.folder import domain_folder, load_domain
from orchestrator.domain.evaluations import ExpectEntry
from parley.main import run
from parley.testing.scripted_model import Answer, Rule, Script, ScriptedModel
from tests.cases import for_each


@pytest.fixture
def domain(tmp_path: Path) -> Path:
    """Return a copy of the travel domain with one file of conversations."""
    original = domain_folder("travel")
    assert original is not None
    folder = tmp_path / "trips"
    shutil.copytree(original, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (folder / "evaluations").glob("*.yaml"):
        if path.stem != "questions":
            path.unlink()
    return folder


SMALL = "tests/domains/lending"
"""A domain that loads quickly, for errors and for models that answer nothing."""


def evaluate(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    """Return the command's exit code and JSON output."""
    code = run(["eval", *arguments, "--json"])
    printed = capsys.readouterr().out
    return code, json.loads(printed) if printed else {}


def test_a_domain_is_measured_and_its_run_is_kept(
    domain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(domain)
    code, found = evaluate(capsys, ".", "--data-dir", str(tmp_path), "--fail-under", "1")

    assert code == 0
    assert found["findings"] == []
    assert found["figures"]["flow_accuracy"] == found["figures"]["full_workflow"] == 1.0
    kept = tmp_path / "evaluations" / "trips" / f"{found['run']}.json"
    assert found["report"] == str(kept)
    assert json.loads(kept.read_text(encoding="utf-8"))["outcomes"] == found["outcomes"]
    assert list(kept.parent.glob("*.json")) == [kept]


def test_a_planted_regression_is_caught(
    domain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The output names each turn that is newly wrong, and the command fails."""
    place = ("--data-dir", str(tmp_path))
    _, before = evaluate(capsys, str(domain), *place)
    ontology = domain / "ontology.yaml"
    ontology.write_text(ontology.read_text(encoding="utf-8").replace("23 kg", "a lot"), encoding="utf-8")

    code, found = evaluate(capsys, str(domain), *place, "--against", before["run"])

    assert code == 1
    assert any(finding.startswith("turns_as_expected fell from 1.000") for finding in found["findings"])
    assert any("the answer does not match" in finding for finding in found["findings"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--fail-under", "high"], "'high' is not a valid minimum score"),
        (["--fail-under", "charm=0.9"], "Unknown score 'charm'"),
        (["--against", "yesterday"], "Run 'yesterday' not found"),
        (["--model", "any"], "needs an endpoint"),
        (["--prompts", "none"], "--prompts requires --model"),
    ],
)
def test_what_cannot_be_measured_is_said(
    tmp_path: Path,
    arguments: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)

    assert run(["eval", SMALL, "--data-dir", str(tmp_path), *arguments]) == 1
    assert words in capsys.readouterr().err


def test_a_sentence_is_explained_reader_by_reader(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "book a flight from Oslo to Madrid", "--json"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert [one["reader"] for one in found["readers"]] == [
        "refusals, unreadable",
        "commands",
        "plain_answers",
        "plain_answers, talk",
        "pages",
        "refusals, unlikely",
        "plan_changes",
        "added_steps",
        "system1",
        "system2",
    ]
    assert found["decided_by"] == "system1"
    assert found["understanding"]["flows"][0]["dact"] == "book_flight"
    assert found["understanding"]["slots"] == {"origin": "OSL", "destination": "MAD"}


def test_what_a_model_was_asked_is_told_in_tokens(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    meant = {"kind": "chitchat", "flows": [], "slots": {}}
    with ScriptedModel(Script(default=Answer(json=meant))) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
        assert run(["explain", "the frobnicator wobbles a little", "--model", "small", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["decided_by"] == "system2"
    assert found["prompts"]["nlu_think"]["calls"] == 1
    assert 200 < found["prompts"]["nlu_think"]["tokens_a_call"] < 1_000


def test_what_a_domain_does_not_take_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "drop the frobnicator", "--domain", "analytics"]) == 0

    assert "“frobnicator”" in capsys.readouterr().out


def test_models_are_measured_side_by_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each model has a separate run. The local classifier answers in place of a failing model."""
    with ScriptedModel(Script(rules=())) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
        chosen = ("--model", "small", "--model", "large")
        code = run(["eval", SMALL, "--data-dir", str(tmp_path), *chosen])

    printed = capsys.readouterr().out
    assert code == 0
    assert all(
        name in printed for name in ("small", "large", "flow accuracy", "nlu_think", "tokens per call")
    )
    kept = sorted(path.stem for path in (tmp_path / "evaluations" / "lending").glob("*.json"))
    assert [name.rpartition("-")[2] for name in kept] in (["large", "small"], ["small", "large"])


PROMPT = """---
id: nlu_think
version: short-1
purpose: Understand a message
settings: flows
data: utterance, history, stack, question, shown, plan
---
Say what is meant. There are {{ flows | length }} tasks.
"""


def test_prompts_are_measured_beside_the_domains_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each request has the version of its prompt."""
    (tmp_path / "short").mkdir()
    (tmp_path / "short" / "nlu_think.md").write_text(PROMPT, encoding="utf-8")
    with ScriptedModel(Script(rules=())) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
        tried = ("--model", "small", "--prompts", str(tmp_path / "short"))
        run(["eval", SMALL, "--data-dir", str(tmp_path), *tried])
        versions = {one.metadata["prompt_version"] for one in model.requests_for("nlu_think")}

    assert "small, short" in capsys.readouterr().out
    assert len(versions) == 2
    assert "short-1" in versions


def test_an_empty_folder_of_prompts_is_said_before_anything_is_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "none").mkdir()
    tried = ("--data-dir", str(tmp_path), "--model", "small", "--prompts", str(tmp_path / "none"))

    with ScriptedModel(Script(rules=())) as model, pytest.MonkeyPatch.context() as environment:
        environment.setenv("OPENAI_BASE_URL", model.base_url)
        assert run(["eval", SMALL, *tried]) == 1
        assert not model.requests_for("nlu_think")
    assert "contains no prompts" in capsys.readouterr().err


def test_answers_are_judged_by_their_rubric(
    domain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By rules, and by a model if available. An answer that the model rejects makes the turn wrong."""
    path = domain / "evaluations" / "questions.yaml"
    path.write_text(
        """
conversations:
  - name: a greeting
    turns:
      - user: hello
        expect: {rubric: [{asks: true, most_words: 30}, It greets, It names a price]}
""",
        encoding="utf-8",
    )
    place = (str(domain), "--data-dir", str(tmp_path))
    _, unjudged = evaluate(capsys, *place)
    verdicts: Any = [{"met": True, "why": "it says Hello"}, {"met": False, "why": "it names none"}]
    with ScriptedModel(
        Script(rules=(Rule(prompt="eval_judge", replies=(Answer(json={"verdicts": verdicts}),)),))
    ) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
        code, found = evaluate(capsys, *place, "--judge", "strict", "--fail-under", "rubric=0.8")
        (asked,) = model.requests_for("eval_judge")

    assert unjudged["figures"]["rubric"] == unjudged["figures"]["turns_as_expected"] == 1.0
    assert code == 1
    assert found["findings"] == ["rubric is 0.750, below 0.8"]
    assert found["outcomes"][0]["turns"][0]["faults"] == ["fails the rubric: It names a price"]
    assert "2. It names a price" in str(asked.messages[0]["content"])
    assert found["outcomes"][0]["turns"][0]["verdicts"][-1]["why"] == "it names none"


@for_each(
    ("criterion", "answer", "met"),
    [
        ({"says": "23 kg"}, "Up to 23 kg.", True),
        ({"says_not": "refund"}, "There is no refund.", False),
        ({"most_words": 3}, "This is too long", False),
        ({"asks": True}, "On which day?", True),
        ({"asks": False}, "On which day?", False),
    ],
)
async def test_a_rule_is_looked_up_in_the_words(criterion: dict[str, Any], answer: str, met: bool) -> None:
    rubric = ExpectEntry.model_validate({"rubric": [criterion]}).rubric

    (verdict,) = await grade_answer(rubric, None, "", answer, [])
    assert verdict.met is met


def write_cases(tmp_path: Path, cases: str) -> Path:
    """Return a copy of the small domain with these conversations alone."""
    folder = tmp_path / "lending"
    shutil.copytree(SMALL, folder, ignore=shutil.ignore_patterns("__pycache__", "evaluations"))
    (folder / "evaluations").mkdir()
    (folder / "evaluations" / "loans.yaml").write_text(cases)
    return folder


CASES = """\
conversations:
  - name: lending
    turns:
      - {user: I want to borrow the drill, expect: {flow: extend_loan}}
"""


def test_a_turn_that_is_not_as_written_is_printed_with_what_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also, `reset` of evaluations/reset.py runs before each conversation."""
    folder = write_cases(tmp_path, CASES)
    resets = tmp_path / "resets"
    (folder / "evaluations" / "reset.py").write_text(
        f"async def reset():\n    with open({str(resets)!r}, 'a') as kept:\n        kept.write('once ')\n"
    )

    assert run(["eval", str(folder), "--data-dir", str(tmp_path)]) == 0

    printed = capsys.readouterr().err.splitlines()
    start = printed.index("loans: lending: turn 1")
    assert printed[start + 1] == "    said      I want to borrow the drill"
    assert printed[start + 2] == "    wrong     flow is 'borrow_thing', not 'extend_loan'"
    assert printed[start + 3].startswith("    answered  ")
    assert resets.read_text() == "once "


def test_a_file_of_conversations_is_read_as_the_domain_is_and_its_mistakes_have_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`10:30` is a string, as in all files of a domain."""
    cases = "conversations:\n  - turns:\n      - {user: 10:30}\n      - {user: hi, expect: {flwo: a}}\n"
    folder = write_cases(tmp_path, cases)

    assert run(["eval", str(folder), "--data-dir", str(tmp_path)]) == 1

    assert capsys.readouterr().err.splitlines() == [
        "parley: loans.yaml:4: conversations.0.turns.1.expect.flwo: unknown key; did you mean 'flow'?"
    ]


def test_real_services_are_named_before_they_are_called() -> None:
    donations = Path("examples/donations")
    first, second = list_services(load_domain(donations).domain)
    assert first == "Conversations call real services: 127.0.0.1:8711."
    assert "evaluations/reset.py" in second
    assert list(list_services(load_domain(SMALL).domain)) == []
