"""Cross-validation over dialogues: what is learnt from and what is measured never meet.

Dialogues are put into folds by a hash of their identifier; each fold is measured with what the
others teach.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.nlu.readers.system1 import System1
from parley.evaluation.compile import compile_flows, foreign_examples, known_values, user_examples
from parley.evaluation.dataset import Dialogue, Service, read_dialogues, read_schema
from parley.evaluation.metrics import Tally, score_frame
from parley.evaluation.offers import SystemReader
from parley.evaluation.tracker import Tracker

FOLDS = 5


@dataclass(slots=True)
class Report:
    """The measures by service and overall. `dialogues`: how many were measured; `folds`: how often it was learnt."""

    overall: Tally = field(default_factory=Tally)
    services: dict[str, Tally] = field(default_factory=dict[str, Tally])
    dialogues: int = 0
    folds: int = 0
    learnt_from: dict[str, int] = field(default_factory=dict[str, int])
    """By service: how many dialogues its examples came from, in all folds together."""


@dataclass(frozen=True, slots=True)
class Learnt:
    """What one fold knows of one service."""

    service: Service
    flows: dict[str, FlowSpec]
    system1: System1
    reader: SystemReader

    def tracker(self) -> Tracker:
        return Tracker(self.service, self.flows, self.system1, self.reader)


Watch = Callable[[str, int, Service, object, object, str, str], None]


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
        notice: told what is going on, one line at a time.

    Raises:
        InvalidInput: a file is missing or is not of the format.
    """
    services = read_schema(schema_path)
    dialogues = read_dialogues(dialogues_path)
    report = Report(dialogues=len(dialogues))
    for measured, learning in split(dialogues, folds, examples_path):
        report.folds += 1
        notice(f"Part {report.folds}: {len(measured)} dialogues measured, {len(learning)} learnt from.")
        _measure(services, measured, learning, report)
    for tally in report.services.values():
        report.overall.add(tally)
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


def learn(service: Service, dialogues: Sequence[Dialogue]) -> Learnt:
    """Train System 1 and the reader of system turns for one service."""
    values = known_values(service, dialogues)
    flows = compile_flows(service, values)
    extra = [*user_examples(service, dialogues), *foreign_examples(service, dialogues)]
    system1 = System1.train(flows, {}, extra=extra)
    reader = SystemReader.train(service, flows[0], dialogues, system1.extractor)
    return Learnt(service, {flow.dact: flow for flow in flows}, system1, reader)


def _measure(
    services: dict[str, Service], measured: Sequence[Dialogue], learning: Sequence[Dialogue], report: Report
) -> None:
    wanted = {name for dialogue in measured for name in dialogue.services if name in services}
    for name in sorted(wanted):
        if not services[name].intents:
            continue
        learnt = learn(services[name], learning)
        report.learnt_from[name] = report.learnt_from.get(name, 0) + sum(
            1 for dialogue in learning if name in dialogue.services
        )
        for dialogue in measured:
            if name in dialogue.services:
                tally = follow(learnt.tracker(), dialogue)
                report.services.setdefault(name, Tally()).add(tally)


def follow(tracker: Tracker, dialogue: Dialogue, watch: Watch | None = None) -> Tally:
    """Track one dialogue for one service and measure each of its annotated user frames."""
    service = tracker.service
    total = Tally()
    before: dict[str, tuple[str, ...]] = {}
    heard = ""
    current = ""
    for number, turn in enumerate(dialogue.turns):
        if not turn.user:
            heard = turn.text
            if current == service.name:
                tracker.hear(turn.text)
            else:
                tracker.miss()
            continue
        current = turn.frames[-1].service if turn.frames else current
        frame = turn.frame(service.name)
        if frame is None:
            continue
        said_before = dict(tracker.state)
        prediction = tracker.follow(turn.text)
        if frame.state is None:
            continue
        total.add(
            score_frame(service, frame.intent, frame.state, before, frame.requested, prediction, said_before)
        )
        if watch is not None:
            watch(dialogue.identifier, number, service, frame, prediction, heard, turn.text)
        before = frame.state
    return total
