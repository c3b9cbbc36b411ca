"""`parley eval DOMAIN --faults`: short cases find typical bugs of authors, and correct domains pass."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from _pytest.mark import ParameterSet

from lab.domain_evaluation import find_conversations
from lab.faults.cases import describe, read_case
from lab.faults.judge import Breach
from lab.faults.running import Workers
from lab.faults.search import Search, Share, try_case
from lab.faults.sound import Sounds
from orchestrator.adapters.domains.folder import load_domain
from orchestrator.domain.evaluations import EvaluationFile, FaultKind
from orchestrator.nlu.system1 import System1
from parley.main import run

LENDING = Path("tests/domains/lending")
EVERY_FAULT = 100
"""Number of cases in which each kind of fault occurs."""
OF_ONE, OF_ONE_LONG = 12, 55
"""Number of cases per conversation. It finds most bugs, and the long form finds all, with some combined faults."""
OF_THE_OUTSIDE = (FaultKind.WORKER_DEATH, FaultKind.OTHER_WORKER, FaultKind.TIME_OUT, FaultKind.LOST_ANSWER)
"""Faults that reveal problems in tools and policies."""


@dataclass(frozen=True)
class Bug:
    """An author's mistake: for each edit, a file, the original text and its replacement.

    `about`: the conversation that fails. `cases`: the number of cases in the short form.
    """

    name: str
    breach: Breach
    about: str
    edits: tuple[tuple[str, str, str], ...]
    kinds: tuple[FaultKind, ...] = OF_THE_OUTSIDE
    cases: int = OF_ONE


SERVICES, TOOLS = "services.py", "tools.yaml"
DRAFT = "        draft: JsonObject ="
BUGS = (
    Bug(
        "what cannot be called twice is marked as if it could",
        Breach.TWICE,
        "a reminder",
        (
            (
                TOOLS,
                "service: Messages.send\n    idempotent: false",
                "service: Messages.send\n    idempotent: true",
            ),
        ),
    ),
    Bug(
        "the status query looks for something else",
        Breach.TWICE,
        "a reminder",
        ((SERVICES, '{"call": idempotency_key}', '{"key": idempotency_key}'),),
    ),
    Bug(
        "the status query always says done",
        Breach.UNTRUE,
        "a reminder",
        ((SERVICES, 'if sent else {"status"', 'if sent is not None else {"status"'),),
    ),
    Bug(
        "the service makes an answer up when its store is silent",
        Breach.UNTRUE,
        "a reminder",
        (
            (
                SERVICES,
                '        await self.records.create("sent", str(uuid.uuid4()), message)\n',
                """        try:
            await self.records.create("sent", str(uuid.uuid4()), message)
        except Exception:
            pass
""",
            ),
        ),
    ),
    Bug(
        "a policy writes outside of the journal",
        Breach.TWICE,
        "a loan",
        (
            (
                "policies/transform_policies.py",
                "from parley import BasePolicy\n",
                "import uuid\n\nfrom parley import BasePolicy\n\nfrom ..services import Loans\n",
            ),
            (
                "policies/transform_policies.py",
                '    dact = "borrow_thing"\n',
                """    dact = "borrow_thing"

    async def complete(self, run):
        await Loans.latest.records.create("notices", str(uuid.uuid4()), {"lent": run.value("thing")})
        return await super().complete(run)
""",
            ),
            (
                SERVICES,
                "    async def create(",
                """    def __init__(self, context):
        super().__init__(context)
        Loans.latest = self

    async def create(""",
            ),
        ),
        cases=20,
    ),
    Bug(
        "a value is kept in a variable of the module",
        Breach.OTHER_WORDS,
        "a loan that is extended",
        (
            (SERVICES, "def _place(", "_LAST = {}\n\n\ndef _place("),
            (SERVICES, DRAFT, f"        _LAST[call.session_id] = thing\n{DRAFT}"),
            (
                SERVICES,
                '"""Extend a loan by a week, once per call."""',
                'thing = _LAST.get(call.session_id, "thing")',
            ),
        ),
    ),
    Bug(
        "a value is kept in the service",
        Breach.UNTOLD,
        "a loan that is extended",
        (
            (SERVICES, DRAFT, f"        self.weeks = {{call.session_id: 1}}\n{DRAFT}"),
            (
                SERVICES,
                '"weeks": loan["weeks"] + 1',
                '"weeks": getattr(self, "weeks", {}).get(call.session_id, 0) + 1',
            ),
        ),
    ),
    Bug(
        "the service ignores the call's key",
        Breach.TWICE,
        "a loan",
        ((SERVICES, '"shelf", call.idempotency_key', '"shelf", str(uuid.uuid4())'),),
    ),
    Bug(
        "silence is told as a failure",
        Breach.UNTOLD,
        "a loan that is extended",
        (
            (
                SERVICES,
                '            await self.records.update("loans", _place(thing, call), changes)\n',
                """            try:
                await self.records.update("loans", _place(thing, call), changes)
            except Exception:
                raise ToolFailure(FailureCategory.VALIDATION_ERROR, "It could not be extended.") from None
""",
            ),
        ),
    ),
    Bug(
        "a second attempt is taken for a second loan",
        Breach.UNTOLD,
        "a loan",
        (
            (
                SERVICES,
                DRAFT,
                f"""        if await self.records.get("loans", _place(thing, call)) is not None:
            raise ToolFailure(FailureCategory.VALIDATION_ERROR, f"The {{thing}} is out.")
{DRAFT}""",
            ),
        ),
    ),
    Bug(
        "a second attempt leaves out what the first one did not come to",
        Breach.UNTRUE,
        "a loan",
        (
            (
                SERVICES,
                DRAFT,
                f"""        known = await self.records.get("loans", _place(thing, call))
        if known is not None and known["key"] == call.idempotency_key:
            return {{"thing": thing, "weeks": known["weeks"]}}
{DRAFT}""",
            ),
        ),
        cases=20,
    ),
    Bug(
        "an offer does not name the delivery",
        Breach.UNASKED,
        "a loan",
        (("templates/borrow_thing.confirm.md.j2", "", "Shall I lend it?\n"),),
        (FaultKind.NONSENSE,),
        cases=30,
    ),
)


@pytest.fixture(scope="module")
def learnt() -> System1:
    """Return the trained local classifier of the domain, which no bug changes."""
    return System1.for_domain(load_domain(LENDING).domain)


def plant(bug: Bug, tmp_path: Path) -> Path:
    """Copy the domain and add a bug."""
    folder = tmp_path / "lending"
    shutil.copytree(LENDING, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file, right, wrong in bug.edits:
        text = (folder / file).read_text(encoding="utf-8") if (folder / file).exists() else ""
        assert text.count(right) == 1, right
        (folder / file).write_text(text.replace(right, wrong), encoding="utf-8")
    return folder


def look(
    domain: Path, learnt: System1, *, about: str = "", budget: int, kinds: Collection[FaultKind]
) -> Share:
    """Run the domain's conversations whose names have this prefix."""
    found = find_conversations(str(domain))
    assert found is not None
    chosen = {one.name: one for one in found[1]["loans"] if one.name.startswith(about)}
    return asyncio.run(Search(Workers(str(domain), learnt), chosen, 0, budget, kinds).look())


def test_a_domain_without_bugs_bears_every_fault(learnt: System1) -> None:
    share = look(LENDING, learnt, budget=EVERY_FAULT, kinds=tuple(FaultKind))

    assert share.found == {}
    assert set(share.by_kind) == set(FaultKind)


def in_short() -> list[ParameterSet]:
    """Select the first bug of each breach; the long form finds the others, too."""
    first = {bug.breach: bug for bug in reversed(BUGS)}
    return [
        *(pytest.param(bug, None, id=bug.name) for bug in first.values()),
        *(pytest.param(bug, OF_ONE_LONG, id=f"{bug.name}, long", marks=pytest.mark.slow) for bug in BUGS),
    ]


@pytest.mark.parametrize(("bug", "budget"), in_short())
def test_a_planted_bug_is_found(bug: Bug, budget: int | None, learnt: System1, tmp_path: Path) -> None:
    """The case can be saved. It finds the bug again, and passes without the bug."""
    folder = plant(bug, tmp_path)
    share = look(folder, learnt, about=bug.about, budget=budget or bug.cases, kinds=bug.kinds)

    found = [one for one in describe("lending", share, (), seed=0)["found"] if one["breach"] == bug.breach]
    assert found, {one.finding for one in share.found.values()}
    case = min((one["case"] for one in found), key=lambda text: text.count("\n"))
    kept = EvaluationFile.model_validate({"conversations": yaml.safe_load(case)}).conversations[0]
    for domain, wrong in ((folder, {bug.breach}), (LENDING, set[Breach]())):
        findings, _ = asyncio.run(try_case(Sounds(Workers(str(domain), learnt)), read_case("kept", kept)))
        assert {one.breach for one in findings} >= wrong
        assert bool(findings) == bool(wrong)


def test_the_command_prints_keeps_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`parley eval` also runs a case saved in `evaluations/`, and fails while the bug exists."""
    folder = plant(BUGS[0], tmp_path)
    place = ("--data-dir", str(tmp_path), "--json")

    assert run(["eval", str(folder), "--faults", "--budget", "60", *place]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["taken"] == 60
    assert Breach.TWICE in {one["breach"] for one in report["found"]}
    assert {**json.loads(Path(report["report"]).read_text()), "report": report["report"]} == report

    case = next(one["case"] for one in report["found"] if one["breach"] == Breach.TWICE)
    kept = folder / "evaluations" / "kept.yaml"
    kept.write_text(f"conversations:\n{case}\n", encoding="utf-8")
    assert run(["eval", str(folder), *place]) == 1
    assert Breach.TWICE in json.loads(capsys.readouterr().out)["findings"][0]


@pytest.mark.parametrize(("words", "ends"), [("never mind", "cancelled"), ("help", "done")])
def test_what_is_said_while_a_turn_is_at_work_is_understood(words: str, ends: str, learnt: System1) -> None:
    """RT-5: a question waits for its turn. “Never mind” stops the running one."""
    said = {"user": "show my loans", "faults": {"interjected": f"before loan_list: {words}"}}
    conversation = EvaluationFile.model_validate({"conversations": [{"name": "list", "turns": [said]}]})
    case = read_case("list", conversation.conversations[0])

    findings, heard = asyncio.run(try_case(Sounds(Workers(str(LENDING), learnt)), case))

    assert findings == []
    told = [("show my loans", ends), (words, "done")]
    assert [(one.said, one.status) for one in heard] == told
    listed = next(one for one in heard if one.at)
    assert (listed.reply == "I found nothing that matches.") == (ends == "done")
