"""`parley eval`: take a domain's conversations through the Agent and measure it; or System 1 on annotated dialogues."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.errors import InvalidInput
from orchestrator.types import JsonObject
from parley.commands.options import DEFAULT_DATA_DIR, DataDir
from parley.data_folder import EVALUATIONS
from parley.evaluation.dialogues.telling import By, Measured, Telling
from parley.output import print_json, print_prompts, print_table, say
from parley.terminal.drawing import WIDTH, bar

if TYPE_CHECKING:
    from parley.evaluation.domains import Conversations, DomainReport, Variant

app = typer.Typer()

_NO_FIGURES = frozenset({"kinds_of_misses", "misses"})
_FILES = ("dialogues.jsonl", "dialogues.json")
SOURCE = (
    "Baseline: figures on the development set in the README of the dataset's baseline "
    "(google-research/schema_guided_dst), a BERT model fine-tuned on the dataset's training set."
)
_MEASURES = {
    "frames": "frames",
    "active_intent_accuracy": "intent acc.",
    "requested_slots_f1": "requested F1",
    "slot_f1": "slot F1",
    "average_goal_accuracy": "avg. goal acc.",
    "joint_goal_accuracy": "joint goal acc.",
    "expected_calibration_error": "calib. error",
}
_PUBLISHED = ("active_intent_accuracy", "requested_slots_f1", "average_goal_accuracy", "joint_goal_accuracy")
BASELINE: dict[str, JsonObject] = {
    "baseline, SGD-Single": dict(zip(_PUBLISHED, (0.966, 0.965, 0.776, 0.486), strict=True)),
    "baseline, SGD-All": dict(zip(_PUBLISHED, (0.885, 0.972, 0.694, 0.383), strict=True)),
}

Models = Annotated[
    list[str] | None, typer.Option(help="Let this model understand and write; several: side by side.")
]
PromptFolders = Annotated[
    list[Path] | None,
    typer.Option(help="A folder of prompts to try, beside the domain's own; several: side by side."),
]
FailUnder = Annotated[
    list[str] | None, typer.Option(help="End with 1 below this: 0.95 of the turns, or slot_f1=0.9.")
]
Against = Annotated[
    str | None, typer.Option(help="End with 1 if worse than this run: its name, file, or `latest`.")
]
Judge = Annotated[
    str | None,
    typer.Option(
        help="Let this model judge answers by their rubric; else the first --model.", show_default=False
    ),
]
Curve = Annotated[
    bool, typer.Option("--curve", help="Learn from 1, 2, 4, … examples a flow as well: do more of them help?")
]
Faults = Annotated[
    bool, typer.Option("--faults", help="Let something go wrong at every step, and judge what comes of it.")
]
Budget = Annotated[int, typer.Option(help="How many conversations `--faults` takes.", min=1)]
Seed = Annotated[int, typer.Option(help="What gives their order, and the choice of several faults at once.")]
AsWhat = Annotated[
    Measured,
    typer.Option("--as", help="Measure what of annotated dialogues: System 1, or the whole runtime."),
]
ByWhom = Annotated[By, typer.Option(help="Who understands for the runtime; `--model` names a model.")]
Told = Annotated[Telling, typer.Option(help="How much the annotations tell of a turn.")]
Mistaken = Annotated[float, typer.Option(help="The share of wrong answers.", min=0, max=1)]


@app.command("eval")
def evaluate_domain_or_dialogues(
    target: Annotated[
        str | None,
        typer.Argument(
            help="A domain (name or folder), a file of its conversations, or a folder with annotated dialogues.",
            show_default=False,
        ),
    ] = None,
    model: Models = None,
    prompts: PromptFolders = None,
    judge: Judge = None,
    curve: Curve = False,
    faults: Faults = False,
    budget: Budget = 1500,
    seed: Seed = 0,
    fail_under: FailUnder = None,
    against: Against = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    schema: Annotated[Path | None, typer.Option(help="Schema of annotated dialogues.")] = None,
    dialogues: Annotated[Path | None, typer.Option(help="Annotated dialogues, a file or folder.")] = None,
    examples: Annotated[
        Path | None, typer.Option(help="Learn from these dialogues instead of by cross-validation.")
    ] = None,
    folds: Annotated[int, typer.Option(help="Parts of the cross-validation.", min=2, max=20)] = 5,
    as_what: AsWhat = Measured.SYSTEM1,
    by: ByWhom = By.ANNOTATIONS,
    told: Told = Telling.NEW,
    mistaken: Mistaken = 0.0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure a domain on its conversations.

    They go through the real Agent; the run is kept, beside an HTML report. A folder with schema.json and
    dialogues.jsonl is measured as annotated dialogues: what System 1 understands of them, or what the runtime does.
    """
    from parley.evaluation.domains import evaluate_domain, find_conversations  # noqa: PLC0415  # slow to import

    found = find_conversations(target) if target is not None and schema is None else None
    if found is None:
        files = locate(Path(target) if target else None, schema, dialogues)
        if as_what is Measured.RUNTIME:
            _drive(files, data_dir, By.MODEL if model else by, model, told, mistaken, as_json=json)
        else:
            _evaluate_dialogues(files, examples, folds, as_json=json)
        return
    if faults:
        _try_faults(*found, data_dir, seed, budget, as_json=json)
        return
    report = asyncio.run(
        evaluate_domain(
            *found,
            variants=_list_variants(model, prompts, curve=curve),
            judge=judge or next(iter(model or ()), None),
            bounds=fail_under or [],
            against=against,
            folder=data_dir / EVALUATIONS / Path(found[0]).resolve().name,
            notice=say,
        )
    )
    _end(report, as_json=json)


def _list_variants(model: Models, prompts: PromptFolders, *, curve: bool) -> list[Variant]:
    """List what is measured side by side: each model with the domain's prompts and each folder's, or System 1."""
    from parley.evaluation.domains import Variant  # noqa: PLC0415  # slow to import
    from parley.evaluation.runs import CURVE  # noqa: PLC0415  # slow to import

    if prompts and not model:
        raise InvalidInput("Prompts are for a model: name one with --model.", field="prompts")
    if curve and model:
        raise InvalidInput("The curve is of System 1 alone: measure models without it.", field="curve")
    learnt = [Variant(examples=count) for count in CURVE] if curve else []
    return [*learnt, *(Variant(one, tried) for one in model or [None] for tried in (None, *(prompts or ())))]


def _try_faults(
    domain: str, files: Conversations, data_dir: Path, seed: int, budget: int, *, as_json: bool
) -> None:
    """Print what faults do to a domain, each in its shortest case; anything found makes the command fail."""
    from parley.evaluation.faults.cases import try_faults  # noqa: PLC0415  # slow to import

    folder = data_dir / EVALUATIONS / Path(domain).resolve().name / "faults"
    report, page = try_faults(domain, files, folder, seed=seed, budget=budget)
    if as_json:
        print_json({**report, "report": str(page)})
    else:
        rows = [[name.replace("_", " "), count] for name, count in report["faults"].items()]
        print_table(("fault", "times"), rows)
        for one in report["found"]:
            print(f"! {one['why']}\n{one['case']}")
        for sentence in report["kept_cases"]:
            print(f"! {sentence}")
        say(f"{report['taken']} conversations; the report is {page}")
    if report["found"] or report["kept_cases"]:
        raise typer.Exit(1)


def _end(report: DomainReport, *, as_json: bool) -> None:
    """Print what was measured; something that is too low or worse than before makes the command fail."""
    _print_report(report, as_json=as_json)
    if report.findings:
        raise typer.Exit(1)


def _print_report(report: DomainReport, *, as_json: bool) -> None:
    """Print the figures of all runs beside each other, what the last one confused, and what is too low."""
    if as_json:
        print_json({**report.runs[-1], "report": str(report.page), "findings": report.findings})
        return
    last = report.runs[-1]
    names = [run["name"] for run in report.runs]
    rows = [
        [name.replace("_", " "), *(_show(run["figures"].get(name)) for run in report.runs)]
        for name in last["figures"]
    ]
    print_table(("figure", *names), rows)
    for run in report.runs:
        print_prompts(run["prompts"])
    for confusion in last["confusion"]:
        if confusion["expected"] != confusion["taken"]:
            near = " (edge flows)" if confusion["neighbours"] else ""
            print(f"{confusion['expected']} taken for {confusion['taken']}: {confusion['turns']}{near}")
    for finding in report.findings:
        print(f"! {finding}")
    say(f"Kept as {last['run']}; the report is {report.page}")


def _drive(
    files: tuple[Path, Path],
    data_dir: Path,
    by: By,
    models: list[str] | None,
    told: Telling,
    mistaken: float,
    *,
    as_json: bool,
) -> None:
    """Take annotated dialogues through the runtime, and compare its calls with those annotated."""
    from parley.evaluation.dialogues.drive import drive  # noqa: PLC0415  # slow to import

    if by is By.MODEL and not models:
        raise InvalidInput("Say which model is to understand: --model NAME.", field="model")
    name = models[0] if by is By.MODEL and models else None
    figures, report = asyncio.run(
        drive(
            *files,
            folder=data_dir / EVALUATIONS,
            by=by,
            model=name,
            told=told,
            mistaken=mistaken,
            notice=say,
        )
    )
    if as_json:
        print_json({**figures, "report": str(report)})
        return
    shown = (
        (one.replace("_", " "), _show(value)) for one, value in figures.items() if one not in _NO_FIGURES
    )
    print_table(("figure", "understood by " + (name or by.value)), list(shown))
    for kind, count in figures["kinds_of_misses"].items():
        print(f"{kind}: {count}")
    say(f"Each miss, with its dialogue, stands in {report}")


def _evaluate_dialogues(
    files: tuple[Path, Path], examples: Path | None, folds: int, *, as_json: bool
) -> None:
    """Measure System 1 on schema-guided dialogues. No dialogue is measured with what it taught."""
    from parley.evaluation.dialogues.tracking import evaluate  # noqa: PLC0415  # slow to import

    report = evaluate(*files, folds=folds, examples_path=examples, notice=say)
    figures = {**report.figures(), "baseline": BASELINE}
    if as_json:
        print_json(figures)
        return
    print(f"System 1, {report.dialogues} dialogues, {report.folds} parts")
    rows = {**figures["services"], "all services": figures["overall"], **BASELINE}
    cells = ([name, *(_show(row.get(measure)) for measure in _MEASURES)] for name, row in rows.items())
    print_table(("service", *_MEASURES.values()), list(cells))
    print("Accuracy of intents (bar) by predicted probability (¦):")
    for one in figures["reliability"]:
        print(f"{one['frames']:6} frames  {_draw(one['right'], one['sure'])}  {one['right']:.2f}")
    print(SOURCE)


def locate(path: Path | None, schema: Path | None, dialogues: Path | None) -> tuple[Path, Path]:
    """Find the two files of annotated dialogues. Raises InvalidInput when one of them is not given."""
    if path is not None:
        schema = schema or path / "schema.json"
        dialogues = dialogues or next((file for name in _FILES if (file := path / name).exists()), path)
    if schema is None or dialogues is None:
        raise InvalidInput(
            "Give a domain, or a folder of dialogues, or --schema and --dialogues.", field="target"
        )
    return schema, dialogues


def _draw(share: float, mark: float) -> str:
    """Draw a share as a bar, with a mark at another share."""
    drawn = list(bar(share).ljust(WIDTH, "·"))
    drawn[min(WIDTH - 1, round(mark * WIDTH))] = "¦"
    return "".join(drawn)


def _show(value: float | None) -> str:
    return "" if value is None else str(value) if isinstance(value, int) else f"{value:.3f}"
