from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from orchestrator.adapters.domains.folder import LoadedDomain
from orchestrator.dialogue.understanding import Mention, Understanding
from orchestrator.models.calling import CallContext
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.protocol import Asker, Message, Reader, Reading
from orchestrator.nlu.readers import READERS
from orchestrator.nlu.readers.setup import ReaderSetup
from orchestrator.nlu.system1 import System1
from orchestrator.nlu.text import clean
from orchestrator.nlu.unused import UnusedWords
from orchestrator.nlu.validate import Validation
from orchestrator.res.templates import word_for
from orchestrator.saying import Told
from orchestrator.types import Json, JsonObject, SessionId, TurnId


async def explain(
    sentence: str, loaded: LoadedDomain, system1: System1, asker: Asker | None = None
) -> JsonObject:
    """Run the NLU components on the first message of a conversation, and return their results.

    `readers` has each component's result, `decided_by` the deciding component, and `understanding` the
    interpretation, validated as in a turn. `model_problem`: the error code if the model did not answer, or None.
    """
    setup = ReaderSetup(loaded.domain, system1, asker)
    context = NluContext(datetime.now(UTC).date())
    call = CallContext(session_id=SessionId("session_explained"), turn_id=TurnId("turn_explained"))
    words = clean(sentence)
    message = Message(sentence, words, system1.lexicon.to_english(words), call)
    heard: list[JsonObject] = []
    decided: Reading | None = None
    for make in READERS:
        reader = make(setup)
        reading = await reader(message, context) if reader is not None and decided is None else None
        heard.append({"reader": _name_of(make), "said": _describe(reader, reading, decided)})
        if reading is not None and reading.is_final:
            decided = reading
        elif reading is not None:
            message = replace(message, guess=reading)
    last = decided or message.guess
    assert last is not None, "the local classifier interprets every message"
    domain = loaded.domain
    validation = Validation(system1.flows, domain.slot_types, system1.extractor, domain.config.command_flows)
    validated, problems = validation.validate(last.understanding, context)
    unused = UnusedWords(system1.flows, system1.answers, system1.extractor)
    understanding = unused.judge(validated, message.english, context)
    # The component that refuses a message also explains why.
    refused = any(not flow.dact for flow in last.understanding.flows)
    return {
        "sentence": sentence,
        "domain": loaded.domain.name,
        "readers": heard,
        "decided_by": understanding.source.value,
        "confidence": round((message.guess or last).confidence if last.problem else last.confidence, 3),
        "model_problem": last.problem,
        "ask_a_model_below": loaded.domain.config.thresholds.confident,
        "understanding": _show(understanding, partial(word_for, loaded.domain)),
        "problems": [] if refused else list(problems),
    }


def _name_of(make: Callable[[ReaderSetup], Reader | None]) -> str:
    """Return a component's name: ``refusals, unreadable`` for ``refusals.make_unreadable``."""
    what = make.__name__.removeprefix("make").strip("_").replace("_", " ")
    return ", ".join(part for part in (make.__module__.rpartition(".")[2], what) if part)


def _describe(reader: Reader | None, reading: Reading | None, decided: Reading | None) -> str:
    if decided is not None:
        return "skipped: an earlier component decided"
    if reader is None:
        return "not used: the domain doesn't need this component, or no model is configured"
    if reading is None:
        return "passed to the next component"
    if reading.problem is not None:
        return f"the model did not respond ({reading.problem}); the local classifier's interpretation is used"
    found = reading.understanding
    flows = ", ".join(f"{flow.dact} {flow.score:.2f}" for flow in found.flows if flow.dact)
    verdict = "decided" if reading.is_final else "undecided"
    refused = f" (rejected: {found.rejection.value})" if found.rejection is not None else ""
    return f"{verdict}: {found.kind.value}{refused}{f', {flows}' if flows else ''}, confidence {reading.confidence:.2f}"


def _show(understanding: Understanding, word: Callable[[Told], str]) -> JsonObject:
    return {
        "kind": understanding.kind.value,
        "flows": [{"dact": flow.dact, "score": round(flow.score, 3)} for flow in understanding.flows],
        "slots": {name: _show_mention(mention, word) for name, mention in understanding.slots.items()},
        "target": understanding.target,
        "assumed": [*map(word, understanding.assumed)],
        "not_understood": list(understanding.not_understood),
        "rejection": None if understanding.rejection is None else understanding.rejection.value,
    }


def _show_mention(mention: Mention, word: Callable[[Told], str]) -> Json:
    if mention.invalid is not None:
        return f"“{mention.text}”: {word(mention.invalid)}"
    return list(mention.candidates) if mention.value is None else mention.value
