from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import orjson

from lab.replay.comparing import ASPECTS
from lab.replay.running import Wanted
from orchestrator.errors import InvalidInput
from orchestrator.types import Json, JsonObject

REPLAYS: Final = "replays"
"""Subfolder of a domain's evaluations that contains the reports."""
MOST_KEPT: Final = 1000
"""Maximum number of changed turns stored with their differences. Other changed turns are only counted."""
MOST_TOLD: Final = 50
_LONGEST: Final = 160


def sum_up(
    domain: str,
    wanted: Wanted,
    sessions: Sequence[JsonObject],
    seconds: float,
    allowed: frozenset[str] = frozenset(),
) -> JsonObject:
    """Return the report on a replay. `sessions`: one result per session. `seconds`: the replay's duration.

    `allowed`: see `read_allowed`.
    """
    made = datetime.now(UTC)
    left_out, not_made, changed = Counter[str](), Counter[str](), Counter[str]()
    different: list[JsonObject] = []
    for one in sessions:
        left_out.update(one["left_out"])
        not_made.update(one["not_made"])
        for turn in one["different"]:
            changed.update(turn["changes"].keys())
            names = (name := one["session"], f"{name} {turn['epoch']}")
            different.append({"session": name, **turn, "allowed": not allowed.isdisjoint(names)})
    turns = sum(one["turns"] for one in sessions)
    return {
        "replay": f"{made:%Y%m%d-%H%M%S}",
        "tenant_id": wanted.tenant,
        "domain": domain,
        "by": {name: getattr(wanted, name) for name in ("domain", "prompt", "model")},
        "made_at": made.isoformat(timespec="seconds"),
        "sessions": len(sessions),
        "turns": turns,
        "differing": len(different),
        "changed": {name: changed[name] for name in ASPECTS if changed[name]},
        "not_made": dict(sorted(not_made.items())),
        "left_out": dict(sorted(left_out.items())),
        "remembering": sum(one["remembering"] for one in sessions),
        "seconds": round(seconds, 3),
        "turns_a_second": round(turns / max(seconds, 1e-9), 1),
        "different": different,
    }


def read_allowed(path: Path | None) -> frozenset[str]:
    """Read the turns that may differ: one session, or one session and epoch, per line. `path`: None to allow none.

    Text after # is a comment. Raises InvalidInput if the file can't be read.
    """
    try:
        lines = [] if path is None else path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}", field="allow") from error
    return frozenset(said for line in lines if (said := " ".join(line.partition("#")[0].split())))


def count_forbidden(report: JsonObject, aspects: Collection[str]) -> int:
    """Count turns with differences that aren't allowed. `aspects`: the aspects to check, or empty for all."""
    return sum(
        not turn["allowed"] and (not aspects or not turn["changes"].keys().isdisjoint(aspects))
        for turn in report["different"]
    )


def keep(report: JsonObject, folder: Path) -> Path:
    place = folder / report["domain"] / REPLAYS
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{report['replay']}.json"
    kept = {**report, "different": report["different"][:MOST_KEPT]}
    path.write_bytes(orjson.dumps(kept, option=orjson.OPT_INDENT_2))
    return path


def tell(report: JsonObject) -> Iterator[str]:
    for turn in report["different"][:MOST_TOLD]:
        mark = (
            " (allowed)"
            if turn["allowed"]
            else " (uses current preferences and documents)"
            if turn["remembers"]
            else ""
        )
        yield f"{turn['session']}, version {turn['epoch']}: “{turn['said']}”{mark}"
        for aspect, places in turn["changes"].items():
            for place in places:
                at = f" {place['at']}" if place["at"] else ""
                yield f"  {aspect}{at}: {_show(place['then'])} → {_show(place['now'])}"
    if report["differing"] > MOST_TOLD:
        yield f"… and {_count(report['differing'] - MOST_TOLD, 'more turns')}"
    seen = ", ".join(_count(report[name], name) for name in ("sessions", "turns"))
    yield f"{seen}: {report['differing']} changed."
    for name, count in report["changed"].items():
        yield f"  {name}: {count}"
    for tool, count in report["not_made"].items():
        yield f"Not called, because no recording exists: {tool} {_count(count, 'times')}."
    for why, count in report["left_out"].items():
        yield f"Skipped: {_count(count, 'turns')} {why}."
    if report["remembering"]:
        yield f"{_count(report['remembering'], 'turns')} used the current preferences and documents."
    yield f"No side effects were executed. {report['turns_a_second']:.0f} turns per second."


def _count(number: int, things: str) -> str:
    return f"{number} {things.removesuffix('s') if number == 1 else things}"


def _show(value: Json) -> str:
    written = "nothing" if value is None else orjson.dumps(value).decode()
    return written if len(written) <= _LONGEST else written[: _LONGEST - 1] + "…"
