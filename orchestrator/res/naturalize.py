"""A template's words, said as one would say them, by a model (RS-3). The facts are the template's.

A rewriting that loses or adds a number, a code or a link is not used, nor is one that grew.
"""

from __future__ import annotations

import re
from typing import Protocol

from orchestrator.context.coordinator import ContextCoordinator
from orchestrator.ports.models import MODEL_FAILURES
from orchestrator.prompting.calling import CallContext
from orchestrator.res.answer import Answer
from orchestrator.res.escape import escape_value
from orchestrator.res.templates import Templates
from orchestrator.types import Json
from orchestrator.world.world import World

NATURALIZE = "res_naturalize"
HISTORY = 7
MOST_SENTENCES = 6
LANGUAGES = {"en": "English", "de": "German", "es": "Spanish", "fr": "French", "it": "Italian", "nl": "Dutch"}
_LIST = re.compile(r"^\s*(?:[-*+|>#]|\d+[.)])\s|^```", re.MULTILINE)
_ESCAPE = re.compile(r"\\(?=[\\`*\[\]<>_#+\-|~\d])")
_FACT = re.compile(r"https?://\S+|[^\s,;!?()“”\"']*\d[^\s,;!?()“”\"']*|\b[A-Z]{2,}\b")


class Writer(Protocol):
    """What is asked of the Prompt Engineer."""

    def can_answer(self, prompt_id: str | None) -> bool: ...

    async def text(self, prompt_id: str, variables: dict[str, Json], call: CallContext) -> str: ...


async def naturalize(world: World, answer: Answer, templates: Templates, writer: Writer | None) -> None:
    """Have what has been told so far rewritten, where the domain wants it; else leave it as it is."""
    draft = answer.message
    if writer is None or not draft or not _is_wanted(world, answer, templates):
        return
    if not writer.can_answer(NATURALIZE):
        return
    plain = _ESCAPE.sub("", draft)
    try:
        text = await writer.text(NATURALIZE, _variables(world, plain), world.call)
    except MODEL_FAILURES as error:
        world.failed_check("res", "naturalize", f"{error.code}: {error}")
        return
    fault = find_fault(plain, text)
    if fault is not None:
        world.failed_check("res", "naturalize", fault)
        return
    answer.parts = [_escape(text)]
    answer.templates.append(NATURALIZE)


def _is_wanted(world: World, answer: Answer, templates: Templates) -> bool:
    mode = world.domain.config.generation.naturalize
    if mode == "off" or any(templates.is_fixed(name) for name in answer.templates):
        return False
    return mode == "on" or (bool(world.completed) and _LIST.search(answer.message) is None)


def _variables(world: World, draft: str) -> dict[str, Json]:
    config = world.domain.config
    code = config.language.default
    messages = ContextCoordinator.of(world.state).with_summary(HISTORY)
    return {
        "persona": f"{config.persona.name}; {config.persona.tone}",
        "language": LANGUAGES.get(code, f"the language “{code}”"),
        "max_sentences": MOST_SENTENCES,
        "draft": draft,
        "utterance": world.text,
        "history": [{"role": message.role, "text": message.text} for message in messages],
    }


def find_fault(draft: str, text: str) -> str | None:
    """Say why a rewriting must not be used; None when it holds every fact of the draft and no other."""
    before, after = _facts(draft), _facts(text)
    if before - after:
        return f"The rewriting lost: {', '.join(sorted(before - after))[:200]}."
    if after - before:
        return f"The rewriting added: {', '.join(sorted(after - before))[:200]}."
    if len(text) > 2 * len(draft) + 200:
        return f"The rewriting has {len(text)} characters, the draft {len(draft)}."
    return None


def _facts(text: str) -> set[str]:
    return {found.rstrip(".:") for found in _FACT.findall(text)}


def _escape(text: str) -> str:
    """What a model wrote is no markup (RS-7); its paragraphs and list items stay."""
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(_escape_line(line) for line in lines)


def _escape_line(line: str) -> str:
    item = re.match(r"(?:[-*]|\d+[.)])\s+", line)
    if item is None:
        return str(escape_value(line))
    return item[0] + str(escape_value(line[item.end() :]))
