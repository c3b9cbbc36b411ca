"""Cross-validation over dialogues: what is learnt from and what is measured never meet.

Dialogues are put into folds by a hash of their identifier; each fold is measured with what the
others teach.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.nlu.readers.system1 import System1
from orchestrator.types import JsonObject
from parley.evaluation.dialogues.compile import compile_flows, foreign_examples, known_values, user_examples
from parley.evaluation.dialogues.dataset import Dialogue, Service, read_dialogues, read_schema
from parley.evaluation.dialogues.metrics import FrameScore, score_frame, summarize
from parley.evaluation.dialogues.offers import SystemReader
from parley.evaluation.dialogues.tracker import Tracker

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

    Args:
        schema_path: the services.
        dialogues_path: the dialogues to be measured.
        folds: into how many parts they are divided; each is measured with what the others teach.
        examples_path: further dialogues to learn from; then nothing is learnt from the measured ones.
        notice: given what is going on, one line at a time.

    Raises:
        InvalidInput: a file is missing or is not of the format.
    """
    services = read_schema(schema_path)
    dialogues = read_dialogues(dialogues_path)
    report = Report(dialogues=len(dialogues))
    for measured, learning in split(dialogues, folds, examples_path):
        report.folds += 1
        notice(f"Part {report.folds}: {len(measured)} dialogues measured, {len(learning)} learnt from.")
        wanted = {name for dialogue in measured for name in dialogue.services if name in services}
        for name in sorted(wanted):
            if not services[name].intents:
                continue
            make_tracker = learn(services[name], learning)
            for dialogue in measured:
                if name in dialogue.services:
                    report.services[name] += follow(make_tracker(), dialogue)
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


def learn(service: Service, dialogues: Sequence[Dialogue]) -> Callable[[], Tracker]:
    """Train System 1 and the reader of system turns for one service; makes a tracker for each dialogue."""
    flows = compile_flows(service, known_values(service, dialogues))
    examples = [*user_examples(service, dialogues), *foreign_examples(service, dialogues)]
    system1 = System1.train(flows, {}, extra=examples)
    reader = SystemReader.train(service, flows[0], dialogues, system1.extractor)
    return lambda: Tracker(service, {flow.dact: flow for flow in flows}, system1, reader)


def follow(tracker: Tracker, dialogue: Dialogue) -> list[FrameScore]:
    """Track one dialogue for one service and measure each of its annotated user frames."""
    service = tracker.service
    scores: list[FrameScore] = []
    before: dict[str, tuple[str, ...]] = {}
    current = ""
    for turn in dialogue.turns:
        if not turn.user:
            tracker.read_system(turn.text if current == service.name else None)
            continue
        current = turn.frames[-1].service if turn.frames else current
        frame = turn.frame(service.name)
        if frame is None:
            continue
        predicted_before = dict(tracker.state)
        prediction = tracker.read_user(turn.text)
        if frame.state is not None:
            scores.append(score_frame(service, frame.state, before, prediction, predicted_before))
            before = frame.state.slot_values
    return scores
