"""Compare the calls that the runtime made in annotated dialogues with those that are annotated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from orchestrator.types import JsonObject
from parley.evaluation.dialogues.dataset import Service
from parley.evaluation.dialogues.runtime import Call, Taken


def count_calls(taken: Sequence[Taken], services: Mapping[str, Service]) -> JsonObject:
    """Give the figures of all dialogues: shares between 0 and 1, a share of nothing is null.

    `exact_at_turn`, `exact_ever`: annotated calls that were made with the same parameters, at that turn or at any.
    `made_annotated`: calls made that are annotated somewhere in their dialogue. `reached`: dialogues with every
    annotated call made and no other that changes something. `asked`: the share of turns for which the annotations were
    asked.
    """
    wanted = [(one, call) for one in taken for call in one.wanted]
    made = [(one, call) for one in taken for call in one.made]
    at_turn = [any(call.equals(m) and call.turn == m.turn for m in one.made) for one, call in wanted]
    ever = [any(call.equals(m) for m in one.made) for one, call in wanted]
    annotated = [any(call.equals(w) for w in one.wanted) for one, call in made]
    changing = [_changes(call, services) for _, call in wanted]
    queries = [is_ever for is_ever, changes in zip(ever, changing, strict=True) if not changes]
    transactions = [is_ever for is_ever, changes in zip(ever, changing, strict=True) if changes]
    misses = [miss for one in taken for miss in _misses(one)]
    return {
        "dialogues": len(taken),
        "turns": (turns := sum(len(one.talk) for one in taken)),
        "asked": sum(one.asked for one in taken) / turns if turns else None,
        "annotated_calls": len(wanted),
        "exact_at_turn": _share(at_turn),
        "exact_ever": _share(ever),
        "queries_ever": _share(queries),
        "transactions_ever": _share(transactions),
        "made_calls": len(made),
        "made_annotated": _share(annotated),
        "unfounded_transactions": sum(
            _changes(call, services) and not is_annotated
            for (_, call), is_annotated in zip(made, annotated, strict=True)
        ),
        "reached": _share([_is_reached(one, services) for one in taken]),
        "kinds_of_misses": dict(Counter(miss["kind"] for miss in misses).most_common()),
        "misses": misses,
    }


def _misses(taken: Taken) -> Iterator[JsonObject]:
    """Describe what was not made as annotated, and what was made and is not annotated, with the turn's words."""
    for call in taken.wanted:
        if not any(call.equals(made) for made in taken.made):
            near = [made for made in taken.made if _same_task(made, call)]
            kind = "other values" if near else "not made"
            yield _describe(taken, call, kind, near)
    for call in taken.made:
        if not any(call.equals(wanted) for wanted in taken.wanted):
            near = [wanted for wanted in taken.wanted if _same_task(wanted, call)]
            yield _describe(taken, call, "made with other values" if near else "made unasked", near)


def _describe(taken: Taken, call: Call, kind: str, near: Sequence[Call]) -> JsonObject:
    said, meant, answer = taken.talk[call.turn - 1] if 0 < call.turn <= len(taken.talk) else ("", {}, "")
    return {
        "dialogue": taken.dialogue.identifier,
        "turn": call.turn,
        "kind": kind,
        "call": {call.method: dict(sorted(call.parameters))},
        "instead": [{one.method: dict(sorted(one.parameters)), "turn": one.turn} for one in near],
        "said": said,
        "meant": meant,
        "answer": answer,
    }


def _is_reached(taken: Taken, services: Mapping[str, Service]) -> bool:
    is_complete = all(any(call.equals(made) for made in taken.made) for call in taken.wanted)
    unfounded = [call for call in taken.made if not any(call.equals(wanted) for wanted in taken.wanted)]
    return is_complete and not any(_changes(call, services) for call in unfounded)


def _same_task(one: Call, other: Call) -> bool:
    return (one.service, one.method) == (other.service, other.method)


def _changes(call: Call, services: Mapping[str, Service]) -> bool:
    return services[call.service].intents[call.method].is_transactional


def _share(flags: Sequence[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None
