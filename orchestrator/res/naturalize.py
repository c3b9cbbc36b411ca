"""A template's words, said as one would say them, by a model (RS-3, RS-4). The facts are the template's.

Several completed flows are merged the same way: their paragraphs make one draft. A rewriting that
loses or adds a fact is not used.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple, Protocol

from orchestrator.context.coordinator import ContextCoordinator
from orchestrator.ports.models import MODEL_FAILURES
from orchestrator.prompting.calling import CallContext
from orchestrator.res.answer import Answer
from orchestrator.res.facts import find_added, find_fault
from orchestrator.res.markup import unescape
from orchestrator.res.rewriting import escape_rewriting, is_list
from orchestrator.res.show import show_slots
from orchestrator.res.streaming import TokenStream, count_tokens
from orchestrator.types import Json
from orchestrator.world.world import World

NATURALIZE = "res_naturalize"
HISTORY = 7
FEWEST_SENTENCES = 6
TOKENS_PER_SENTENCE = 20
LANGUAGES = {"en": "English", "de": "German", "es": "Spanish", "fr": "French", "it": "Italian", "nl": "Dutch"}


class Writer(Protocol):
    """What is asked of the Prompt Engineer."""

    def can_answer(self, prompt_id: str | None) -> bool: ...

    async def text(
        self,
        prompt_id: str,
        variables: dict[str, Json],
        call: CallContext,
        *,
        publish: Callable[[str], Awaitable[None]] | None = None,
    ) -> str: ...


class Draft(NamedTuple):
    """Paragraphs `first` … `last` (exclusive) of an answer, without backslashes."""

    first: int
    last: int
    text: str


async def naturalize(world: World, answer: Answer, writer: Writer | None) -> None:
    """Have what has been told so far rewritten, where the domain wants it; else leave it as it is."""
    mode = world.domain.config.generation.naturalize
    if writer is None or mode == "off" or not answer.parts:
        return
    if mode == "auto" and not world.completed:
        return
    draft = _find_draft(answer, lists=mode == "on")
    if draft is None or not writer.can_answer(NATURALIZE):
        return
    before = "".join(f"{part}\n\n" for part in answer.parts[: draft.first])
    stream = _open_stream(world, draft, before)
    text = await _ask(world, draft, writer, stream)
    if text is None:
        return
    answer.streamed = stream is not None and stream.begun
    answer.parts[draft.first : draft.last] = [escape_rewriting(text)]
    answer.fixed = {
        place if place < draft.first else place - (draft.last - draft.first) + 1 for place in answer.fixed
    }
    answer.templates.append(NATURALIZE)


async def _ask(world: World, draft: Draft, writer: Writer, stream: TokenStream | None) -> str | None:
    """The rewriting, if it can be had and used."""
    publish = stream.take if stream is not None else None
    try:
        text = await writer.text(NATURALIZE, _variables(world, draft.text), world.call, publish=publish)
        fault = _judge(world, draft.text, text)
    except MODEL_FAILURES as error:
        text, fault = "", f"{error.code}: {error}"
    if fault is None:
        return text
    world.failed_check("res", "naturalize", fault)
    if stream is not None:
        await stream.take_back()
    return None


def _find_draft(answer: Answer, *, lists: bool) -> Draft | None:
    """The longest run of paragraphs that may be rewritten."""
    best: Draft | None = None
    first = 0
    for place in range(len(answer.parts) + 1):
        ends = place == len(answer.parts) or place in answer.fixed
        if not ends and (lists or not is_list(answer.parts[place])):
            continue
        text = unescape("\n\n".join(answer.parts[first:place]))
        if text and (best is None or len(text) > len(best.text)):
            best = Draft(first, place, text)
        first = place + 1
    return best


def _open_stream(world: World, draft: Draft, before: str) -> TokenStream | None:
    """A way to tell the words while they come, for an answer that is going to be long (RS-4)."""
    longest = world.domain.config.thresholds.stream_threshold_tokens
    if world.live is None or count_tokens(draft.text) <= longest:
        return None
    english = world.domain.config.language.default == "en"
    name = world.domain.config.persona.name
    return TokenStream(world, before, partial(find_added, draft.text, known=name, english=english))


def _judge(world: World, draft: str, text: str) -> str | None:
    config = world.domain.config
    shown = [
        value
        for flow in world.completed
        for value in show_slots(flow, world.registry, world.now).values()
        if isinstance(value, str)
    ]
    english = config.language.default == "en"
    return find_fault(draft, text, values=shown, known=config.persona.name, english=english)


def _variables(world: World, draft: str) -> dict[str, Json]:
    config = world.domain.config
    code = config.language.default
    messages = ContextCoordinator.of(world.state).with_summary(HISTORY)
    return {
        "persona": f"{config.persona.name}; {config.persona.tone}",
        "language": LANGUAGES.get(code, f"the language “{code}”"),
        "max_sentences": max(FEWEST_SENTENCES, count_tokens(draft) // TOKENS_PER_SENTENCE),
        "draft": draft,
        "utterance": world.text,
        "history": [{"role": message.role, "text": message.text} for message in messages],
    }
