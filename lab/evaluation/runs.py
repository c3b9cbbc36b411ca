"""Store evaluation runs, check them against limits, and compare them."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import orjson

from lab.evaluation.conversations import Outcome
from lab.evaluation.scores import Scores
from orchestrator.errors import InvalidInput
from orchestrator.telemetry import Signal, SignalType
from orchestrator.types import DEFAULT_TENANT, JsonObject

LATEST = "latest"
NO_MODEL = "without a model"
TOLERANCE = 0.005
"""Maximum decrease in a score that doesn't count as a regression."""
MAIN_FIGURE = "turns_as_expected"


@dataclass(frozen=True, slots=True)
class Variant:
    """A model and prompts to evaluate.

    `model`: None to use only the local classifier. `prompts`: a folder of prompts that replace the domain's own.
    """

    model: str | None = None
    prompts: Path | None = None

    @property
    def name(self) -> str:
        prompts = f", {self.prompts.name}" if self.prompts is not None else ""
        return (self.model or NO_MODEL) + prompts

    @property
    def suffix(self) -> str:
        parts = [one for one in (self.model, self.prompts and self.prompts.name) if one]
        return "".join("-" + re.sub(r"\W", "_", one) for one in parts)


@dataclass(frozen=True, slots=True)
class PromptUse:
    """Counts of model calls and tokens, by prompt ID."""

    calls: Counter[str] = field(default_factory=Counter[str])
    tokens: Counter[str] = field(default_factory=Counter[str])

    def note(self, signal: Signal) -> None:
        """Count a model call. Ignore other signals."""
        if signal.type is SignalType.MODEL_CALL:
            self.calls[signal.payload["prompt_id"]] += 1
            self.tokens[signal.payload["prompt_id"]] += signal.payload["tokens"]

    @property
    def figures(self) -> JsonObject:
        return {
            name: {"calls": calls, "tokens_a_call": round(self.tokens[name] / calls)}
            for name, calls in sorted(self.calls.items())
        }


def describe_run(
    domain: str,
    variant: Variant,
    outcomes: Sequence[Outcome],
    scores: Scores,
    use: PromptUse,
    tenant: str = DEFAULT_TENANT,
) -> JsonObject:
    """Return a run in its stored form. `tenant`: the tenant whose operators can read the run in the inspector."""
    made = datetime.now(UTC)
    return {
        "run": f"{made:%Y%m%d-%H%M%S}{variant.suffix}",
        "tenant_id": tenant,
        "domain": domain,
        "model": variant.model,
        "name": variant.name,
        "made_at": made.isoformat(timespec="seconds"),
        "conversations": len(outcomes),
        "turns": sum(len(outcome.turns) for outcome in outcomes),
        "prompts": use.figures,
        "figures": {
            name: None if value is None else round(value, 4) for name, value in scores.figures.items()
        },
        "confusion": [
            {
                "expected": wanted,
                "taken": taken,
                "turns": count,
                "neighbors": (wanted, taken) in scores.neighbors,
            }
            for (wanted, taken), count in sorted(scores.confusion.items())
        ],
        "outcomes": [
            {
                "conversation": f"{outcome.file}: {outcome.name}",
                "turns": [
                    {
                        "said": turn.said,
                        "kind": turn.observed["kind"],
                        "read_by": turn.observed["source"],
                        "flow": turn.observed["flow"],
                        "answer": turn.observed["answer"],
                        "faults": turn.faults,
                        "verdicts": [asdict(verdict) for verdict in turn.verdicts],
                    }
                    for turn in outcome.turns
                ],
            }
            for outcome in outcomes
        ],
    }


def keep(run: JsonObject, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{run['run']}.json"
    path.write_bytes(orjson.dumps(run, option=orjson.OPT_INDENT_2))
    return path


def find_run(said: str, folder: Path) -> JsonObject:
    """Read a stored run by its name or file, or the latest run if `said` is ``latest``.

    Raises:
        InvalidInput: the run does not exist.
    """
    kept = sorted(folder.glob("*.json"))
    path = Path(said) if said.endswith(".json") else folder / f"{said}.json"
    if said == LATEST and kept:
        path = kept[-1]
    if not path.is_file():
        there = (
            f" The latest are {', '.join(one.stem for one in kept[-5:])}."
            if kept
            else " No runs are stored yet."
        )
        raise InvalidInput(f"Run {said!r} not found in {folder}.{there}", field="against")
    run: JsonObject = orjson.loads(path.read_bytes())
    return run


def read_bounds(said: Sequence[str]) -> dict[str, float]:
    """Parse minimum scores such as ``slot_f1=0.9``, or ``0.95`` for the share of turns that meet their expectations.

    Raises:
        InvalidInput: a value is not a number.
    """
    bounds: dict[str, float] = {}
    for one in said:
        name, sign, number = one.rpartition("=")
        try:
            bounds[name if sign else MAIN_FIGURE] = float(number)
        except ValueError:
            raise InvalidInput(
                f"{one!r} is not a valid minimum score: use a number such as 0.95, or a named one such as slot_f1=0.9.",
                field="fail_under",
            ) from None
    return bounds


def find_shortfalls(figures: Mapping[str, float | None], bounds: Mapping[str, float]) -> Iterator[str]:
    """Yield a message for each score below its minimum. Scores of None pass. Raises InvalidInput for unknown scores."""
    for name, bound in bounds.items():
        if name not in figures:
            raise InvalidInput(
                f"Unknown score {name!r}; choose from {', '.join(figures)}.", field="fail_under"
            )
        value = figures[name]
        if value is not None and value < bound:
            yield f"{name} is {value:.3f}, below {bound:g}"


def find_regressions(run: JsonObject, earlier: JsonObject) -> Iterator[str]:
    """Yield regressions: scores lower by more than `TOLERANCE`, and turns that have faults only in `run`."""
    for name, before in earlier["figures"].items():
        now = run["figures"].get(name)
        if before is not None and now is not None and now < before - TOLERANCE:
            yield f"{name} fell from {before:.3f} to {now:.3f}"
    faults = dict(_faults_by_turn(run))
    for name, before in _faults_by_turn(earlier):
        if not before and faults.get(name):
            yield f"{name}: {faults[name][0]}"


def _faults_by_turn(run: JsonObject) -> Iterator[tuple[str, list[str]]]:
    for outcome in run["outcomes"]:
        for number, turn in enumerate(outcome["turns"], start=1):
            yield f"{outcome['conversation']}, turn {number} (“{turn['said']}”)", turn["faults"]
