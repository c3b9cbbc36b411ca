"""A skill's built-in tools, in addition to its flow's tools: history, memory and flows (PX-5).

The built-in tools return JSON copies. They change only the scratchpad and the session's labels.
"""

from collections.abc import Sequence

from orchestrator.context import TurnContext
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.domain.model import COMPONENT_NAMES
from orchestrator.memory.business_context import PASSAGES_READ
from orchestrator.memory.context_coordinator import ContextCoordinator
from orchestrator.memory.notes import AT_HAND, LONGEST, Note, NoteKind
from orchestrator.pex.execution import Execution
from orchestrator.ports.language_model import ToolDefinition
from orchestrator.ports.memory.documents import Owned, Passage
from orchestrator.tools.trifecta import join_labels, label_work
from orchestrator.types import Json, JsonObject, copy_json

HISTORY, MEMORY, STACK = COMPONENT_NAMES
DEFAULT_TURNS, MOST_TURNS = 3, 20
PREFERENCES_READ = 20
RESULTS_READ = 5


def _object(required: list[str], **properties: JsonObject) -> JsonObject:
    return {"type": "object", "additionalProperties": False, "required": required, "properties": properties}


COMPONENTS = (
    ToolDefinition(
        HISTORY,
        f"Read the messages of the last turns (default: {DEFAULT_TURNS}).",
        _object([], turns={"type": "integer", "minimum": 1, "maximum": MOST_TURNS}),
    ),
    ToolDefinition(
        MEMORY,
        "Read the session's notes (read), leave a note for later tasks (write, with text), read what is "
        "remembered of the user's preferences (preferences, with text: what about), or look something up in "
        "the documents at hand (documents, with text: the question).",
        _object(
            ["operation"],
            operation={"type": "string", "enum": ["read", "write", "preferences", "documents"]},
            text={"type": "string", "minLength": 1, "maxLength": LONGEST},
        ),
    ),
    ToolDefinition(
        STACK,
        "Read the current task's values (slots) or description (metadata), or the results of earlier tasks "
        "(results; of one task, with task).",
        _object(
            ["operation"],
            operation={"type": "string", "enum": ["slots", "metadata", "results"]},
            task={"type": "string"},
        ),
    ),
)


async def use_component(run: Execution, name: str, arguments: JsonObject) -> Json:
    match name:
        case "context_coordinator":
            return _read_history(run, arguments.get("turns", DEFAULT_TURNS))
        case "memory_manager":
            return await _use_memory(run, arguments["operation"], arguments.get("text"))
        case _:
            return _read_flows(run, arguments["operation"], arguments.get("task"))


def _read_history(run: Execution, turns: int) -> JsonObject:
    return {"history": ContextCoordinator(run.context.state.history).compile_history(turns, keep_system=True)}


async def _use_memory(run: Execution, operation: str, text: str | None) -> JsonObject:
    context = run.context
    match operation:
        case "read":
            return {"notes": await read_notes(context, AT_HAND)}
        case "preferences":
            return await _read_preferences(context, text or context.text)
        case "documents":
            return await _read_documents(context, text or context.text)
        case _:
            pass
    if text is None:
        return {"ok": False, "message": "`write` requires `text`."}
    await write_note(run, text, by_skill=True)
    return {"ok": True}


async def read_notes(context: TurnContext, most: int) -> list[str]:
    """Return the latest scratchpad entries, and add their labels to the session."""
    notes = await context.recall.notes.read(most)
    for note in notes:
        join_labels(context.state, note.labels, f"a note about {note.about}")
    return [note.text for note in notes]


async def _read_preferences(context: TurnContext, words: str) -> JsonObject:
    preferences = context.recall.preferences
    found = [] if preferences is None else (await preferences.find(words))[:PREFERENCES_READ]
    for preference in found:
        join_labels(context.state, preference.labels, "what I remember about you")
    shown = [
        {"about": one.key, "text": one.text, "value": one.value, "why": one.source.value} for one in found
    ]
    return {"preferences": copy_json(shown)}


async def search_documents(context: TurnContext, question: str) -> list[Passage]:
    """Return passages for a question from the user's documents, or [] if there is no document store.

    Raises Unavailable if the document store is down.
    """
    if context.recall.documents is None:
        return []
    owned = Owned(context.ids.tenant_id, context.ids.user_id, context.world.domain.name)
    return await context.recall.documents.search(owned, question, limit=PASSAGES_READ)


def note_labels(context: TurnContext, passages: Sequence[Passage]) -> None:
    """Add the labels of the passages' documents to the session (PX-3)."""
    for passage in passages:
        source = f"the document {passage.title or passage.document_id}"
        join_labels(context.state, passage.labels, source)


async def _read_documents(context: TurnContext, question: str) -> JsonObject:
    found = await search_documents(context, question)
    note_labels(context, found)
    return {"passages": [{"title": one.title, "text": one.text, "score": one.score} for one in found]}


async def write_note(
    run: Execution, *texts: str, kind: NoteKind = NoteKind.FINDING, by_skill: bool = False
) -> None:
    """Write scratchpad entries with the labels of their sources. `by_skill`: True if a skill wrote the texts."""
    state, flow = run.context.state, run.flow
    labels = label_work(state, flow, run.own_tools, text=run.context.text, by_skill=by_skill or run.by_skill)
    for text in texts:
        await run.context.recall.notes.write(flow, Note(text, flow.dact, state.turn, labels, kind))


def _read_flows(run: Execution, operation: str, task: str | None) -> JsonObject:
    flow = run.flow
    if operation == "slots":
        missing = [name for name in flow.spec.slots if flow.value(name) is None]
        return {"slots": copy_json(flow.values()), "empty": missing}
    if operation == "metadata":
        return {**_describe(flow), "inputs": list(flow.spec.inputs), "outputs": list(flow.spec.outputs)}
    done = [one for one in run.context.state.completed if task in {None, one.dact}]
    return {
        "results": [
            {**_describe(one), "slots": copy_json(one.values()), "outputs": copy_json(one.outputs)}
            for one in done[-RESULTS_READ:]
        ]
    }


def _describe(flow: BaseFlow) -> JsonObject:
    return {
        "task": flow.dact,
        "description": flow.spec.description,
        "intent": flow.spec.intent,
        "state": flow.state.value,
    }
