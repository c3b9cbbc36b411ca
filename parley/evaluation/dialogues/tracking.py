"""Cross-validation over dialogues: what is learnt from and what is measured never meet.

Dialogues are put into folds by a hash of their identifier; each fold is measured with what the
others teach.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from orchestrator.nlu.readers.system1 import System1
from orchestrator.types import JsonObject
from parley.evaluation.dialogues.compile import (
    Words,
    compile_flows,
    shared_values,
    spoken_flow,
    user_examples,
)
from parley.evaluation.dialogues.dataset import Dialogue, Service, read_dialogues, read_schema
from parley.evaluation.dialogues.decisions import AnswerModel, IntentModel, WishModel, read_lessons
from parley.evaluation.dialogues.metrics import FrameScore, reliability, score_frame, summarize
from parley.evaluation.dialogues.offers import SystemReader
from parley.evaluation.dialogues.tracker import CarryModel, DialogueTracker, Learnt
from parley.evaluation.name_spans import learn_spans

FOLDS = 5


@dataclass(slots=True)
class Report:
    """Scores by service. `dialogues`: how many were measured; `folds`: how often it was learnt."""

    services: dict[str, list[FrameScore]] = field(default_factory=lambda: defaultdict(list))
    dialogues: int = 0
    folds: int = 0

    @property
    def overall(self) -> list[FrameScore]:
        return [score for scores in self.services.values() for score in scores]

    def figures(self) -> JsonObject:
        """The figures of all services and overall; a measure that does not apply is null."""
        return {
            "dialogues": self.dialogues,
            "folds": self.folds,
            "overall": summarize(self.overall),
            "reliability": [asdict(one) for one in reliability(self.overall)],
            "services": {name: summarize(scores) for name, scores in sorted(self.services.items())},
        }


def evaluate(
    schema_path: Path,
    dialogues_path: Path,
    *,
    folds: int = FOLDS,
    examples_path: Path | None = None,
    notice: Callable[[str], None] = lambda _line: None,
) -> Report:
    """Measure System 1 on the dialogues of a file.

    Each of the `folds` parts is measured with what the others teach; with `examples_path`, further dialogues to learn
    from, nothing is learnt from the measured ones.

    Raises:
        InvalidInput: a file is missing or is not of the format.
    """
    services = read_schema(schema_path)
    dialogues = read_dialogues(dialogues_path)
    report = Report(dialogues=len(dialogues))
    for measured, learning in split(dialogues, folds, examples_path):
        report.folds += 1
        notice(f"Part {report.folds}: {len(measured)} dialogues measured, {len(learning)} learnt from.")
        learnt = learn(services, learning)
        for dialogue in measured:
            for name, score in follow(learnt, dialogue):
                report.services[name].append(score)
    return report


def split(
    dialogues: Sequence[Dialogue], folds: int, examples_path: Path | None = None
) -> list[tuple[list[Dialogue], list[Dialogue]]]:
    """Pairs of (measured, learnt from), disjoint by the dialogues' identifiers."""
    if examples_path is not None:
        measured = {dialogue.identifier for dialogue in dialogues}
        learning = [d for d in read_dialogues(examples_path) if d.identifier not in measured]
        return [(list(dialogues), learning)]
    parts: list[list[Dialogue]] = [[] for _ in range(max(2, folds))]
    for dialogue in dialogues:
        parts[zlib.crc32(dialogue.identifier.encode()) % len(parts)].append(dialogue)
    return [
        (part, [dialogue for other in parts if other is not part for dialogue in other])
        for part in parts
        if part
    ]


def learn(services: Mapping[str, Service], dialogues: Sequence[Dialogue]) -> Learnt:
    """Train System 1, the reader of system turns and the tracker's decisions for all services."""
    values = shared_values(services.values(), dialogues)
    flows = {
        name: compile_flows(service, values[name]) for name, service in services.items() if service.intents
    }
    spoken = {name: spoken_flow(service, values[name]) for name, service in services.items()}
    examples = [example for name in flows for example in user_examples(services[name], dialogues)]
    specs = {flow.dact: flow for some in flows.values() for flow in some}
    names = learn_spans(examples, specs)
    system1 = System1.train(specs.values(), {}, extra=examples, find_more_names=names and names.find)
    words, lessons = Words(system1.extractor), read_lessons(services, dialogues)
    return Learnt(
        services,
        {name: dict(zip(services[name].intents, some, strict=True)) for name, some in flows.items()},
        system1,
        SystemReader.train(services, spoken, dialogues, words),
        IntentModel.learn(services, lessons, words),
        WishModel.learn(lessons, words),
        AnswerModel.learn(lessons, words),
        CarryModel.learn(services, dialogues, words),
    )


def follow(learnt: Learnt, dialogue: Dialogue) -> Iterator[tuple[str, FrameScore]]:
    """Track one dialogue, and measure each annotated frame of its user's turns, with its service."""
    tracker = DialogueTracker(learnt)
    before: dict[str, Mapping[str, tuple[str, ...]]] = {}
    for turn in dialogue.turns:
        if not turn.user:
            tracker.read_system(turn.text)
            continue
        states = {name: dict(one.state) for name, one in tracker.trackers.items()}
        predictions = tracker.read_user(turn.text, [frame.service for frame in turn.frames])
        for frame in turn.frames:
            name, prediction = frame.service, predictions.get(frame.service)
            if prediction is None or frame.state is None:
                continue
            service = learnt.services[name]
            yield (
                name,
                score_frame(service, frame.state, before.get(name, {}), prediction, states.get(name, {})),
            )
            before[name] = frame.state.slot_values
