from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from lab.evaluation.runs import NO_MODEL
from orchestrator.turns.cases import REFERENCE
from orchestrator.types import JsonObject

_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True, lstrip_blocks=True
)


def write_report(runs: Sequence[JsonObject], findings: Sequence[str]) -> str:
    """Return an HTML report on the last run, compared with the others.

    `findings`: scores below their minimums, regressions and failed fault cases.
    """
    runs = [{"name": one.get("model") or NO_MODEL, **one} for one in runs]  # older runs have no name
    run = runs[-1]
    flows = sorted({name for cell in run["confusion"] for name in (cell["expected"], cell["taken"])})
    most = max((cell["turns"] for cell in run["confusion"]), default=1)
    cells = [
        {
            **cell,
            "row": flows.index(cell["expected"]),
            "column": flows.index(cell["taken"]),
            "weight": round(0.2 + 0.35 * cell["turns"] / most, 2),  # pale enough to read the number
            "wrong": cell["expected"] != cell["taken"],
        }
        for cell in run["confusion"]
    ]
    page = _TEMPLATES.get_template("report.html.j2")
    return page.render(
        run=run,
        runs=runs,
        flows=flows,
        cells=cells,
        findings=findings,
        differences=_compare(runs),
    )


def _outcome_of(turn: JsonObject) -> tuple[str | None, str]:
    return turn["flow"], REFERENCE.sub("…", turn["answer"] or "")


def _compare(runs: Sequence[JsonObject]) -> list[JsonObject]:
    found: list[JsonObject] = []
    by_name = [{one["conversation"]: one["turns"] for one in run["outcomes"]} for run in runs]
    for outcome in runs[-1]["outcomes"]:
        name = outcome["conversation"]
        taken = [turns[name] for turns in by_name if name in turns]
        if len(taken) < len(runs):
            continue
        for number, made in enumerate(zip(*taken, strict=False), start=1):
            if any(_outcome_of(one) != _outcome_of(made[0]) for one in made):
                found.append({"turn": f"{name}, {number}", "said": made[-1]["said"], "made": made})
    return found
