"""Whether a text is in a supported language: its script first, then its commonest words.

A guard, not an identification: short and unclear texts pass. Languages are ISO 639-1 codes.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from orchestrator.dialogue.understanding import MessageKind, Rejection, Source, Understanding
from orchestrator.domain.configuration import Guardrails
from orchestrator.nlu.nlu_context import Situation
from orchestrator.nlu.readers.commands import Commands
from orchestrator.nlu.text import clean

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_READ = 1_000
_FEW_WORDS = 4
_SCRIPTS: dict[str, str] = {
    "en": "LATIN", "de": "LATIN", "fr": "LATIN", "es": "LATIN", "it": "LATIN", "pt": "LATIN", "nl": "LATIN",
    "no": "LATIN", "sv": "LATIN", "da": "LATIN", "pl": "LATIN", "tr": "LATIN", "fi": "LATIN",
    "ru": "CYRILLIC", "uk": "CYRILLIC", "el": "GREEK", "ar": "ARABIC", "fa": "ARABIC", "he": "HEBREW",
    "hi": "DEVANAGARI", "th": "THAI", "ko": "HANGUL", "zh": "CJK", "ja": "CJK",
}  # fmt: skip
_STOP_WORDS: dict[str, frozenset[str]] = {
    code: frozenset(words.split())
    for code, words in {
        "en": "the a an of to and in is it you that for on are with as i my me at be this have from or by what not"
        " can we do will your would please want need book find show how no yes am was there which any get like",
        "de": "der die das und ich ist nicht ein eine zu den mit von auf für im dem des wie bitte möchte nach kann"
        " mir mein wir sie es haben werden einen morgen buchen",
        "fr": "le la les de des et je est un une pour dans que qui vous nous avec sur pas mon ma ce au aux voudrais"
        " du en à il elle plaît bonjour réserver demain",
        "es": "el la los las de y que en un una para con por no es mi quiero del al se lo me está como hola reservar"
        " necesito mañana vuelo gracias",
        "it": "il lo la gli le di e che un una per con non è mi vorrei del della da al sono come ciao prenotare domani",
        "pt": "o a os as de e que em um uma para com por não é meu minha quero do da no na se eu como olá amanhã voo",
        "nl": "de het een en van ik is niet te op met voor dat die aan er mijn naar wil graag heb kan je wij morgen",
        "no": "og jeg er det en et til som på med for av ikke den vil har å fra kan meg i morgen bestille fly",
        "sv": "och jag är det en ett till som på med för av inte den vill har att från kan mig boka imorgon",
        "da": "og jeg er det en et til som på med for af ikke den vil har at fra kan mig bestille fly",
        "pl": "i w na z do nie się jest że to jak chcę proszę mi dla od czy po lot jutro",
        "tr": "ve bir bu için ile ben de da ne istiyorum çok var mı uçuş yarın lütfen",
        "fi": "ja on ei se että minä olen mutta kun haluan lento huomenna kiitos varata",
    }.items()
}


@lru_cache(maxsize=2048)
def _script(char: str) -> str:
    name = unicodedata.name(char, "")
    word = name.split(" ", 1)[0]
    return "CJK" if word in {"HIRAGANA", "KATAKANA"} else word


def is_supported(text: str, languages: tuple[str, ...]) -> bool:
    """Whether a text may be in one of the languages; unknown codes switch the check off."""
    if any(code not in _SCRIPTS for code in languages):
        return True
    if not text.isascii() and not _in_scripts(text, {_SCRIPTS[code] for code in languages}):
        return False
    words = [word.lower() for word in _WORD.findall(text[:_READ])]
    if len(words) < _FEW_WORDS:
        return True
    ours = max((_hits(words, code) for code in languages if code in _STOP_WORDS), default=None)
    if ours is None:
        return True
    others = max((_hits(words, code) for code in _STOP_WORDS if code not in languages), default=0)
    return others < 2 or ours * 2 > others


def _in_scripts(text: str, scripts: set[str]) -> bool:
    letters = [char for char in text[:_READ] if char.isalpha()]
    inside = sum(1 for char in letters if (char.isascii() and "LATIN" in scripts) or _script(char) in scripts)
    return not letters or inside * 2 >= len(letters)


def _hits(words: list[str], code: str) -> int:
    known = _STOP_WORDS[code]
    return sum(1 for word in words if word in known)


LONGEST_READ = 65_536
"""Characters; the doors refuse longer messages, and only this much is looked at."""
_ROLE_MARKERS = re.compile(
    r"<\|[^|<>]{0,40}\|>|\[/?INST\]|<</?SYS>>|</?s>|<(?:start|end)_of_turn>"
    r"|(?:^|\n)\s{0,8}#{2,4}\s{0,4}(?:system|assistant|user|human|instruction)s?\s{0,4}:"
    r"|(?:^|\n)\s{0,8}(?:system|assistant)\s{0,4}:\s|\x02|\x03|<\/?(?:system|assistant|tool_call|function_call)>",
    re.IGNORECASE,
)
_SINGLE_WORDS = frozenset("yn")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A message that may be understood: its cleaned text."""

    text: str


def count_tokens(text: str) -> int:
    """Roughly the tokens a model would count: four bytes each, and never fewer than half the words."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return max((size + 3) // 4, text.count(" ") // 2)


class Preparation:
    """The checks for one domain, made once."""

    def __init__(self, guardrails: Guardrails, languages: tuple[str, ...], commands: Commands) -> None:
        self._guardrails = guardrails
        self._languages = languages
        self._commands = commands
        self._reserved = tuple(token.lower() for token in guardrails.reserved_tokens)

    def prepare(self, raw: str, situation: Situation) -> Prepared | Understanding:
        """Check a message: the cleaned text, or what is already understood of it (a command, a refusal).

        A single character passes when it can answer the open question, and so does a repetition
        when something is open, since the same words may answer two questions.
        """
        if count_tokens(raw) > self._guardrails.max_tokens:
            return refuse(raw[:200], Rejection.TOO_LONG)
        text = clean(raw[:LONGEST_READ])
        if not text or not _says_something(text):
            return refuse(text, Rejection.EMPTY)
        if self._has_reserved(raw) or self._has_reserved(text):
            return refuse(text, Rejection.RESERVED_TOKENS)
        latest = situation.completed[0].spec.dact if situation.completed else None
        command = self._commands.match(text, latest)
        if command is not None:
            return command
        if len(text) < self._guardrails.min_characters and not _fits_question(text, situation):
            return refuse(text, Rejection.TOO_SHORT)
        if not situation.open and text.casefold() == clean(situation.previous).casefold():
            return refuse(text, Rejection.REPEATED)
        if not is_supported(text, self._languages):
            return refuse(text, Rejection.UNSUPPORTED_LANGUAGE)
        return Prepared(text)

    def _has_reserved(self, text: str) -> bool:
        folded = text.lower()
        return any(token in folded for token in self._reserved) or _ROLE_MARKERS.search(text) is not None


def refuse(text: str, why: Rejection) -> Understanding:
    """The understanding of a refused message."""
    return Understanding(MessageKind.UNKNOWN, Source.SYSTEM1, text, rejection=why)


def _fits_question(text: str, situation: Situation) -> bool:
    if situation.confirming or situation.options:
        return text.isdigit() or text.lower() in _SINGLE_WORDS
    return situation.asked is not None and text.isalnum()


def _says_something(text: str) -> bool:
    """Whether there is a letter, a number or a sign of money: emoji and punctuation alone say nothing."""
    return any(char.isalnum() or unicodedata.category(char) == "Sc" for char in text[:2_000])
