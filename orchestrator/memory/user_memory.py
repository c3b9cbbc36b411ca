"""Users' statements about themselves, stored as memories that users can list and forget (CO-4).

A sentence is stored as a note in the user's words. Rules are also stored for slot values that the sentence
names unambiguously.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime

from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.specification import FlowSpec, Priority, SlotSpec
from orchestrator.domain.model import Domain
from orchestrator.domain.services import Service, ToolCall
from orchestrator.domain.services import UserMemory as Port
from orchestrator.errors import FailureCategory, ToolFailure
from orchestrator.memory.forgetting import REPLACES, read_replaced
from orchestrator.memory.tokenizer import share_of, split_words
from orchestrator.ports.memory.preferences import (
    LONGEST_TEXT,
    Preference,
    PreferenceKind,
    PreferenceStore,
    Source,
)
from orchestrator.saying import Saying, Told, say
from orchestrator.types import Json, JsonObject, SessionId, TenantId, UserId

PRIVATE = "private"
LIKE_ENOUGH = 0.5
"""Minimum share of a query's search terms in a matching memory."""
_NEGATION = re.compile(
    r"\b(?:no|not|never|without|hate|avoid|dislike|except|anything but)\b|n['’]t\b", re.IGNORECASE
)


SESSION_OWNER = "session:"
"""Prefix of the owner ID for a session without a user."""


_START = re.compile(r"\bfrom (.{2,60})", re.IGNORECASE)


def owner_of(user_id: UserId | None, session_id: SessionId) -> UserId:
    """Return the owner of memories: the user, or the session if the user is unknown."""
    return user_id if user_id is not None else UserId(f"{SESSION_OWNER}{session_id}")


class UserMemory:
    """A `domain.services.UserMemory` that uses a preference store.

    Args:
        store: the preference store.
        domain: defines the slots and entities that a sentence can mention.
        word: renders a message in the domain's language.
    """

    def __init__(self, store: PreferenceStore, domain: Domain, word: Callable[[Told], str] = str) -> None:
        self._store, self._word = store, word
        specs = [spec for flow in domain.flows.values() for spec in flow.spec.slots.values()]
        self._values = _slot_values(spec for flow in domain.flows.values() for spec in assumable(flow.spec))
        self._sources = {spec.name: spec.entity for spec in specs if spec.type == "source" and spec.entity}
        self._entities = domain.entities

    async def remember(self, call: ToolCall, text: str) -> JsonObject:
        """Store a sentence as a note and as rules, and forget the notes that it replaces."""
        said = " ".join(text.split())[:LONGEST_TEXT].rstrip(" .!")
        key = name_note(said)
        origin: JsonObject = {"session_id": call.session_id, "said_at": call.now, "note": key}
        rules = self._ground(said)
        made = [
            _explicit(f"*.{slot}", PreferenceKind.RULE, origin, said, value) for slot, value in rules.items()
        ]
        owner = owner_of(call.user_id, call.home)
        known = await self._store.of_user(call.tenant_id, owner)
        outdated = _replaced_notes(known, {one.key for one in made}) - {key}
        before = [
            text for one in known if one.key in outdated for text in (one.text, *read_replaced(one.origin))
        ]
        note = _explicit(key, PreferenceKind.NOTE, {**origin, REPLACES: before} if before else origin, said)
        await self._store.remember(call.tenant_id, owner, (note, *made), instead_of=tuple(sorted(outdated)))
        return {"remembered": said, "lasting": call.user_id is not None}

    async def recall(self, call: ToolCall, about: str = "") -> list[JsonObject]:
        """Return all memories, or those that match `about`, if given. Rules that come from a note are omitted."""
        known = await self._store.of_user(call.tenant_id, owner_of(call.user_id, call.home))
        shown = [one for one in _find(known, about) if not _is_of_note(one)]
        return [
            {
                "text": one.text,
                "why": one.source.value,
                "kind": one.kind.value,
                "from": self._word(say_where_from(one)),
            }
            for one in shown
        ]

    async def forget(self, call: ToolCall, about: str = "", *, everything: bool = False) -> list[str]:
        """Forget the memories that match `about`, or everything. Default: forget the user's last statement.

        Return the forgotten texts.
        """
        owner = owner_of(call.user_id, call.home)
        known = await self._store.of_user(call.tenant_id, owner)
        if everything:
            await self._store.forget_everything(call.tenant_id, owner)
            return [one.text for one in known if not _is_of_note(one)]
        if about:
            meant = _find(known, about)
        else:
            said = [one for one in known if one.kind is PreferenceKind.NOTE and one.source is Source.EXPLICIT]
            meant = sorted(said, key=lambda one: one.updated_at)[-1:]
        keys = {one.key for one in meant} | {note for one in meant if (note := _note_of(one))}
        keys |= {one.key for one in known if _note_of(one) in keys}
        await self._store.forget(call.tenant_id, owner, tuple(sorted(keys)))
        return [one.text for one in known if one.key in keys and not _is_of_note(one)]

    def _ground(self, text: str) -> dict[str, str]:
        """Return the values that a sentence names, by slot.

        A slot is skipped if the sentence names several values for it. A sentence with a negation yields no
        values. An entity is used only if the user names it as an origin, because users mention many places
        that they like.
        """
        if _NEGATION.search(text):
            return {}
        starts = _START.findall(text)
        words = f" {' '.join(split_words(text))} "
        found = {
            slot: {value for name, value in names.items() if f" {name} " in words}
            for slot, names in self._values.items()
        }
        found |= {slot: self._find_named(entity, starts) for slot, entity in self._sources.items() if starts}
        return {slot: values.pop() for slot, values in found.items() if len(values) == 1}

    def _find_named(self, entity: str, starts: Sequence[str]) -> set[str]:
        """Return the values of the entity that have a name or alias at the beginning of a text in `starts`."""
        begun = [f"{' '.join(split_words(start))} " for start in starts]
        return {
            value.canonical
            for value in self._entities[entity].values
            for name in (value.name, value.canonical, *value.aliases)
            if (words := " ".join(split_words(name))) and any(one.startswith(f"{words} ") for one in begun)
        }


class UserPreferences:
    """One user's memories during a turn, read on first use."""

    def __init__(self, store: PreferenceStore, tenant_id: TenantId, owner: UserId) -> None:
        self._store = store
        self._tenant_id = tenant_id
        self._owner = owner
        self._known: list[Preference] | None = None

    async def rules(self, flow: BaseFlow, slots: Iterable[SlotSpec]) -> dict[str, Preference]:
        rules = [one for one in await self._all() if one.kind is PreferenceKind.RULE]
        chosen = {spec.name: _choose(rules, flow.dact, spec) for spec in slots}
        return {name: rule for name, rule in chosen.items() if rule is not None}

    async def find(self, words: str) -> list[Preference]:
        said_once = [one for one in await self._all() if not _is_of_note(one)]
        return _find(said_once, words, least=0.0)

    async def _all(self) -> list[Preference]:
        if self._known is None:
            self._known = await self._store.of_user(self._tenant_id, self._owner)
        return self._known


def say_where_from(one: Preference) -> Saying:
    said = day_said(one)
    when = {"day": said.day, "month": said.month, "year": said.year}
    match one.source:
        case Source.EXPLICIT:
            return say("you_said", **when, text=one.text if one.kind is PreferenceKind.RULE else "")
        case Source.INFERRED:
            return say("noticed", **when)
        case Source.HABIT:
            seen, total = one.origin.get("seen"), one.origin.get("of")
            return say("habit", seen=seen or 0, total=total or 0)


def day_said(one: Preference) -> date:
    """Return the UTC date when the user last stated a memory, or when it was last inferred."""
    at: Json = one.origin.get("said_at", one.updated_at)
    return datetime.fromtimestamp(float(at) if isinstance(at, int | float) else 0.0, UTC).date()


def assumable(flow: FlowSpec) -> list[SlotSpec]:
    """Return the slots whose values can be assumed from memory: slots with a fixed set of values.

    Elective slots are excluded, because the user must choose among them, unless another slot of their group
    depends on them.
    """
    closer = {(slot.group, name) for slot in flow.slots.values() for name in slot.depends_on}
    return [
        slot
        for slot in flow.slots.values()
        if (slot.values or slot.entity)
        and (slot.priority is not Priority.ELECTIVE or (slot.group, slot.name) in closer)
    ]


def name_note(text: str) -> str:
    """Return the key of a note. Notes that differ only in case and spacing have the same key."""
    folded = " ".join(text.split()).casefold()
    return f"note.{hashlib.sha256(folded.encode()).hexdigest()[:16]}"


def _choose(rules: list[Preference], dact: str, spec: SlotSpec) -> Preference | None:
    """Return the first available rule: for this task, for all tasks, or for another task with a slot of this name.

    Only explicit rules can determine a task's target. Return None if there is no rule.
    """
    usable = [one for one in rules if one.source is Source.EXPLICIT or spec.type != "target"]
    by_key = {one.key: one for one in usable}
    named = by_key.get(f"{dact}.{spec.name}") or by_key.get(f"*.{spec.name}")
    if named is not None:
        return named
    return next((one for one in usable if one.key.rpartition(".")[2] == spec.name), None)


def _find(known: list[Preference], words: str, *, least: float = LIKE_ENOUGH) -> list[Preference]:
    """Return the memories that contain at least the share `least` of the search terms in `words`, best first.

    Without search terms, return all memories.
    """
    scored = [(share_of(words, _text_of(one), empty=1.0), one) for one in known]
    return [one for score, one in sorted(scored, key=lambda pair: -pair[0]) if score >= least]


def _text_of(one: Preference) -> str:
    return f"{one.text} {one.key.replace('_', ' ').replace('.', ' ')} {one.value or ''}"


def _explicit(
    key: str, kind: PreferenceKind, origin: JsonObject, text: str, value: str | None = None
) -> Preference:
    return Preference(key, kind, Source.EXPLICIT, value, text, (PRIVATE,), origin)


def _note_of(one: Preference) -> str | None:
    """Return the key of the note that a rule was derived from, or None if there is no such note."""
    note = one.origin.get("note")
    return note if one.kind is PreferenceKind.RULE and isinstance(note, str) else None


def _is_of_note(one: Preference) -> bool:
    return _note_of(one) is not None


def _replaced_notes(known: list[Preference], keys: set[str]) -> set[str]:
    """Return the keys of the notes whose rules all have keys in `keys`."""
    rules: dict[str, set[str]] = {}
    for one in known:
        note = _note_of(one)
        if note is not None:
            rules.setdefault(note, set()).add(one.key)
    return {note for note, made in rules.items() if made <= keys}


def _slot_values(slots: Iterable[SlotSpec]) -> dict[str, dict[str, str]]:
    values: dict[str, dict[str, str]] = {}
    for spec in slots:
        named = {**{value: value for value in spec.values}, **spec.synonyms}
        for name, value in named.items():
            words = " ".join(split_words(name.replace("_", " ")))
            if words:
                values.setdefault(spec.name, {})[words] = value
    return values


EVERYTHING = "everything"


class Memory(Service):
    """A service that stores, lists and deletes memories at the user's request."""

    async def remember(self, *, preference: str, call: ToolCall) -> JsonObject:
        return await self._port.remember(call, preference)

    async def recall(self, *, call: ToolCall, about: str = "") -> JsonObject:
        return {"known": await self._port.recall(call, about)}

    async def forget(self, *, call: ToolCall, about: str = "", scope: str = "") -> JsonObject:
        forgotten = await self._port.forget(call, about, everything=scope == EVERYTHING)
        return {"forgotten": forgotten}

    @property
    def _port(self) -> Port:
        if self.memory is None:
            raise ToolFailure(FailureCategory.SERVER_ERROR, say("no_memory"))
        return self.memory
