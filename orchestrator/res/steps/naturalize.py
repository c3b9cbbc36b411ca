"""Rephrase an answer with a model, unless the rephrasing changes facts in the draft (RS-3).

Facts are numbers, codes, links, names, their roles, and negations.
"""

import re
from collections.abc import Iterable
from functools import partial
from itertools import combinations
from typing import NamedTuple

from orchestrator.context import Answer, TurnContext
from orchestrator.memory.context_coordinator import ContextCoordinator
from orchestrator.memory.tokenizer import count_tokens, split_sentences
from orchestrator.models.engineer import PromptEngineer
from orchestrator.ports.language_model import MODEL_FAILURES
from orchestrator.res.languages import LANGUAGES
from orchestrator.res.markup import to_plain
from orchestrator.res.response import Response
from orchestrator.res.streaming import TokenStream, escape_rewriting, is_list
from orchestrator.res.wording import show_slots
from orchestrator.types import Json

_FACT = re.compile(r"https?://\S+|[^\s,;!?()“”\"']*\d[^\s,;!?()“”\"']*|\b[A-Z]{2,}\b")
_NAME = re.compile(r"(?<![\w'’])[A-ZÀ-ÖØ-Þ][^\W\d_]*(?:[-'’][^\W\d_]+)*(?!\w)")
_NOT = re.compile(r"\b(?:not|no|nobody|none|never|nothing|cannot|unable|without)\b|n['’]t\b", re.IGNORECASE)
_SENTENCE_ENDS = ".!?:;\n•–-*(“\"'"
_SELF = frozenset({"i", "i'm", "i’m", "i'll", "i’ll", "i've", "i’ve", "i'd", "i’d", "ok"})
_BEFORE = re.compile(r"(\w+)\s+$")
_PREPOSITIONS = frozenset(
    {"from", "to", "at", "by", "before", "after", "until", "till", "since", "over", "under", "with"}
)
SHORT_SENTENCE = 12
"""Maximum length of a sentence that may be repeated, in characters."""
MOST_TOLD = 200
"""Maximum length of a reported fault, in characters."""


def find_fault(
    draft: str, text: str, *, values: Iterable[str] = (), known: str = "", english: bool = True
) -> str | None:
    """Return why a rephrasing is unusable, or None.

    A rephrasing must keep exactly the draft's facts, must not repeat a sentence, and can be at most twice as long.

    Args:
        draft: the rendered template.
        text: the rephrasing.
        values: display values of slots, which the rephrasing must keep.
        known: words that the rephrasing can add, such as the assistant's name.
        english: True to compare capitalized names and English negations.
    """
    lost = _facts(draft) - _facts(text)
    lost |= {value for value in values if value in draft and value.casefold() not in text.casefold()}
    if english:
        lost |= {name for name in find_names(draft) if not _holds(text, name)}
    if lost:
        return f"The rephrasing omits these facts: {', '.join(sorted(lost))}."[:MOST_TOLD]
    added = find_added(draft, text, known=known, english=english)
    if added is not None:
        return added
    if english and bool(_NOT.search(draft)) != bool(_NOT.search(text)):
        return "The rephrasing added or removed a negation."
    if len(text) > 2 * len(draft):
        return f"The rephrasing has {len(text)} characters, the draft only {len(draft)}."
    twice = _find_repeated(text)
    if twice is not None and twice != _find_repeated(draft):
        return f"The rephrasing repeats: {twice}"[:MOST_TOLD]
    return None


def _find_repeated(text: str) -> str | None:
    """Return the first repeated sentence of more than `SHORT_SENTENCE` characters, or None."""
    seen: set[str] = set()
    for sentence in split_sentences(text):
        words = " ".join(sentence.split()).casefold()
        if words in seen:
            return sentence
        if len(words) > SHORT_SENTENCE:
            seen.add(words)
    return None


def find_added(draft: str, text: str, *, known: str = "", english: bool = True) -> str | None:
    """Return a description of the facts that a rephrasing adds or mixes up, or None.

    `text`: may be partial if it ends with a whole word.
    """
    added = _facts(text) - _facts(draft)
    if english:
        added |= {name for name in find_names(text) if not (_holds(draft, name) or _holds(known, name))}
    if added:
        return f"The rephrasing added: {', '.join(sorted(added))}."[:MOST_TOLD]
    return find_confusion(draft, text) if english else None


def find_confusion(draft: str, text: str) -> str | None:
    """Return a sentence about a changed role, or None: "from Oslo to Madrid" is not "from Madrid to Oslo".

    A fact must keep its preposition. Two facts of the same form must keep their order, unless different
    prepositions distinguish them.
    """
    names = find_names(draft) | find_names(text)
    meant, told = _read_parts(draft, names), _read_parts(text, names)
    shared = [fact for fact in told if fact in meant]
    for fact in shared:
        if meant[fact] and told[fact] and meant[fact] != told[fact]:
            return f"The rephrasing changed “{meant[fact]} {fact}” to “{told[fact]} {fact}”."[:MOST_TOLD]
    order = {fact: place for place, fact in enumerate(meant)}
    for one, other in combinations(shared, 2):
        if (
            order[one] > order[other]
            and _shape(one) == _shape(other)
            and not _told_apart(one, other, meant, told)
        ):
            return f"The rephrasing put {one} before {other}."[:MOST_TOLD]
    return None


def _read_parts(text: str, names: Iterable[str]) -> dict[str, str]:
    """Return a text's facts and the given names in order, each with its preposition or an empty string."""
    found = {fact[0].rstrip(".:"): fact.start() for fact in reversed([*_FACT.finditer(text)])}
    found |= {name: match.start() for name in names if (match := re.search(rf"\b{name}\b", text))}
    parts: dict[str, str] = {}
    for fact, start in sorted(found.items(), key=lambda item: item[1]):
        before = _BEFORE.search(text[:start])
        parts[fact] = before[1].lower() if before and before[1].lower() in _PREPOSITIONS else ""
    return parts


def _shape(fact: str) -> str:
    """Return a fact's form: "name", or a pattern with 9 for digits and "a" for letters."""
    if not any(letter.isdigit() for letter in fact):
        return "name"
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "9", fact))


def _told_apart(one: str, other: str, meant: dict[str, str], told: dict[str, str]) -> bool:
    kept = [fact for fact in (one, other) if meant[fact] and meant[fact] == told[fact]]
    return meant[one] != meant[other] and len(kept) >= (1 if _shape(one) == "name" else 2)


def find_names(text: str) -> set[str]:
    """Return capitalized words that do not start a sentence."""
    return {
        found[0]
        for found in _NAME.finditer(text)
        if found[0].casefold() not in _SELF and not _begins_sentence(text, found.start())
    }


def _begins_sentence(text: str, start: int) -> bool:
    before = text[:start].rstrip(" \t")
    return not before or before[-1] in _SENTENCE_ENDS


def _holds(text: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE) is not None


def _facts(text: str) -> set[str]:
    return {found.rstrip(".:") for found in _FACT.findall(text)}


NATURALIZE = "res_naturalize"
HISTORY = 7
FEWEST_SENTENCES = 6
TOKENS_PER_SENTENCE = 20


class Draft(NamedTuple):
    """The unescaped paragraphs of an answer from `first` to `last` (exclusive)."""

    first: int
    last: int
    text: str


async def naturalize(response: Response) -> None:
    """Rephrase the longest passage of the text so far, if the domain enables rephrasing.

    In `auto` mode, rephrase only answers about completed tasks, and leave out lists.
    """
    context, answer, _, writer = response
    mode = context.world.domain.config.generation.naturalize
    if writer is None or mode == "off" or not answer.parts:
        return
    if mode == "auto" and not context.changes.completed:
        return
    draft = _find_draft(answer, lists=mode == "on")
    fewest = context.world.domain.config.generation.fewest_words
    if draft is None or len(draft.text.split()) < fewest or not writer.can_answer(NATURALIZE):
        return
    before = "".join(f"{part}\n\n" for part in answer.parts[: draft.first])
    stream = _open_stream(context, draft, before)
    text = await _ask(context, draft, writer, stream)
    if text is None:
        return
    paragraphs = escape_rewriting(text).split("\n\n")
    answer.parts[draft.first : draft.last] = paragraphs
    moved = len(paragraphs) - (draft.last - draft.first)
    answer.fixed = {place if place < draft.first else place + moved for place in answer.fixed}
    answer.templates.append(NATURALIZE)


async def _ask(
    context: TurnContext, draft: Draft, writer: PromptEngineer, stream: TokenStream | None
) -> str | None:
    """Return the rephrasing, or None if it is unavailable or unusable."""
    publish = stream.take if stream is not None else None
    try:
        text = await writer.text(NATURALIZE, _variables(context, draft.text), context.call, publish=publish)
        fault = _judge(context, draft.text, text)
    except MODEL_FAILURES as error:
        text, fault = "", f"{error.code}: {error}"
    if fault is None:
        return text
    context.log.failed_check("res", "naturalize", fault)
    if stream is not None:
        await stream.take_back()
    return None


def _find_draft(answer: Answer, *, lists: bool) -> Draft | None:
    """Return the longest run of paragraphs that can be rephrased, or None. `lists`: True to include lists."""
    best: Draft | None = None
    first = 0
    for place in range(len(answer.parts) + 1):
        ends = place == len(answer.parts) or place in answer.fixed
        if not ends and (lists or not is_list(answer.parts[place])):
            continue
        text = to_plain("\n\n".join(answer.parts[first:place]))
        if text and (best is None or len(text) > len(best.text)):
            best = Draft(first, place, text)
        first = place + 1
    return best


def _open_stream(context: TurnContext, draft: Draft, before: str) -> TokenStream | None:
    """Return a stream for a draft longer than `stream_threshold_tokens`, or None (RS-4)."""
    longest = context.world.domain.config.thresholds.stream_threshold_tokens
    if context.live is None or count_tokens(draft.text) <= longest:
        return None
    english = context.world.domain.config.language.default == "en"
    name = context.world.domain.config.persona.name
    return TokenStream(context, before, partial(find_added, draft.text, known=name, english=english))


def _judge(context: TurnContext, draft: str, text: str) -> str | None:
    config = context.world.domain.config
    shown = [
        value
        for flow in context.changes.completed
        for value in show_slots(flow, context.world.registry, context.local_now).values()
        if isinstance(value, str)
    ]
    english = config.language.default == "en"
    return find_fault(draft, text, values=shown, known=config.persona.name, english=english)


def _variables(context: TurnContext, draft: str) -> dict[str, Json]:
    config = context.world.domain.config
    code = config.language.default
    messages = ContextCoordinator(context.state.history).with_summary(HISTORY)
    return {
        "persona": f"{config.persona.name}; {config.persona.tone}",
        "language": LANGUAGES.get(code, f"the language “{code}”"),
        "max_sentences": max(FEWEST_SENTENCES, count_tokens(draft) // TOKENS_PER_SENTENCE),
        "draft": draft,
        "utterance": context.text,
        "history": [{"role": message.role, "text": message.text} for message in messages],
    }
