"""Read, write and run fault cases as YAML conversations, and report on fault searches."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import orjson
import yaml

from lab.faults.ports import Fault
from lab.faults.running import Workers
from lab.faults.search import Case, Found, Search, Share, look_everywhere, try_case
from lab.faults.sound import Sounds
from orchestrator.domain.evaluations import ConversationEntry
from orchestrator.errors import InvalidInput
from orchestrator.types import JsonObject


def write_case(found: Found) -> str:
    case = found.case
    lines = [f"- name: {_write_line(_name(found))}"]
    if case.conversation.now is not None:
        lines.append(f"  now: {_write_line(case.conversation.now)}")
    if case.conversation.config:
        lines.append(f"  config: {_write_line(case.conversation.config)}")
    lines.append("  turns:")
    for at, turn in enumerate(case.conversation.turns, start=1):
        faults = {str(fault.kind): fault.at for fault in case.faults if fault.turn == at}
        said = {"user": turn.user} if turn.action is None else {"action": turn.action}
        lines.append(f"    - {_write_line({**said, **({'faults': faults} if faults else {})})}")
    return "\n".join(lines)


def _name(found: Found) -> str:
    where = ", ".join(f"{fault.kind.replace('_', ' ')} {fault.at}".strip() for fault in found.case.faults)
    return f"{found.finding.breach} ({where})"


def _write_line(value: object) -> str:
    written = yaml.safe_dump(
        value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=100_000
    )
    return written.removesuffix("...\n").strip()


def read_case(name: str, conversation: ConversationEntry) -> Case:
    faults = [
        Fault(kind, at, place)
        for at, turn in enumerate(conversation.turns, start=1)
        for kind, place in turn.faults.items()
    ]
    return Case(name, conversation, tuple(faults))


def part_cases(
    files: Mapping[str, Sequence[ConversationEntry]],
) -> tuple[dict[str, list[ConversationEntry]], dict[str, ConversationEntry]]:
    """Return the conversations without faults by file, and the conversations with faults by file and name."""
    sound = {file: [one for one in given if not _goes_wrong(one)] for file, given in files.items()}
    faulty = {
        f"{file}: {one.name}": one for file, given in files.items() for one in given if _goes_wrong(one)
    }
    return sound, faulty


def _goes_wrong(conversation: ConversationEntry) -> bool:
    return any(turn.faults for turn in conversation.turns)


async def take_kept(sounds: Sounds, kept: Mapping[str, ConversationEntry]) -> list[str]:
    """Run the fault cases stored with a domain. Return a message for each finding. `kept`: cases by name."""
    said: list[str] = []
    for name, conversation in kept.items():
        findings, _ = await try_case(sounds, read_case(name, conversation))
        said += [f"{name}: {one.breach}: {one.why}" for one in findings]
    return said


def try_faults(
    domain: str, files: Mapping[str, Sequence[ConversationEntry]], folder: Path, *, seed: int, budget: int,
    processes: int | None = None,
) -> tuple[JsonObject, Path]:  # fmt: skip
    """Inject faults into a domain's conversations. Return the report and its file.

    `files`: conversations by file. `folder`: where reports are stored. `budget`: maximum number of cases to run.
    `processes`: number of child processes. Default: one per core, or one if services are reset between cases.
    Raises InvalidInput if there are no conversations.
    """
    given, kept = part_cases(files)
    conversations = {f"{file}: {one.name}": one for file, some in given.items() for one in some if one.turns}
    if not conversations:
        raise InvalidInput("No conversations to inject faults into.", field="target")
    workers = Workers(domain)
    if workers.reset is not None:
        processes = 1  # parallel processes would reset each other's services
    share = look_everywhere(Search(workers, conversations, seed, budget), processes)
    broken = asyncio.run(take_kept(Sounds(Workers(domain, workers.system1)), kept)) if kept else []
    report = describe(workers.loaded.domain.name, share, broken, seed=seed)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{report['run']}.json"
    path.write_bytes(orjson.dumps(report, option=orjson.OPT_INDENT_2))
    return report, path


def describe(domain: str, share: Share, broken: Sequence[str], *, seed: int) -> JsonObject:
    """Return the report on a fault search, with the worst findings first. `broken`: messages from `take_kept`."""
    made = datetime.now(UTC)
    order = sorted(
        share.found.values(), key=lambda one: list(type(one.finding.breach)).index(one.finding.breach)
    )
    return {
        "run": f"{made:%Y%m%d-%H%M%S}",
        "domain": domain,
        "made_at": made.isoformat(timespec="seconds"),
        "seed": seed,
        "taken": share.taken,
        "faults": dict(sorted(share.by_kind.items())),
        "kept_cases": list(broken),
        "found": [
            {
                "breach": one.finding.breach.value,
                "why": one.finding.why,
                "times": one.times,
                "conversation": one.case.name,
                "case": write_case(one),
                "transcript": one.transcript,
            }
            for one in order
        ],
    }
