"""Reject messages that cannot be understood (NL-1).

The language check does not identify languages: short and unclear texts pass. Languages are ISO 639-1 codes.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache

from orchestrator.dialogue.understanding import MessageKind, Rejection, Source, Understanding
from orchestrator.domain.configuration import Guardrails
from orchestrator.memory.tokenizer import count_tokens
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.protocol import Message, Reader, Reading
from orchestrator.nlu.readers.setup import ReaderSetup
from orchestrator.nlu.text import clean

_ROLE_MARKERS = re.compile(
    r"<\|[^|<>]{0,40}\|>|\[/?INST\]|<</?SYS>>|</?s>|<(?:start|end)_of_turn>"
    r"|(?:^|\n)\s{0,8}#{2,4}\s{0,4}(?:system|assistant|user|human|instruction)s?\s{0,4}:"
    r"|(?:^|\n)\s{0,8}(?:system|assistant)\s{0,4}:\s|\x02|\x03|<\/?(?:system|assistant|tool_call|function_call)>",
    re.IGNORECASE,
)
_OF_MARKERS = ("<", "[", ":", "\x02", "\x03")
"""Characters for a fast check: every role marker contains at least one of these characters."""
_SINGLE_WORDS = frozenset("yn")
_SHOWN = 200
"""Maximum stored length of a message that is rejected as too long, in characters."""

Check = Callable[["Rules", Message, NluContext], bool]


@dataclass(frozen=True, slots=True)
class Rules:
    """A domain's message checks, in order, with their limits. `own`: words in the domain's examples."""

    guardrails: Guardrails
    languages: tuple[str, ...]
    checks: tuple[tuple[Rejection, Check], ...]
    own: frozenset[str] = frozenset()

    async def read(self, message: Message, context: NluContext) -> Reading | None:
        for rejection, fails in self.checks:
            if fails(self, message, context):
                text = message.raw[:_SHOWN] if rejection is Rejection.TOO_LONG else message.text
                refused = Understanding(MessageKind.UNKNOWN, Source.SYSTEM1, text, rejection=rejection)
                return Reading(refused)
        return None


def _is_too_long(rules: Rules, message: Message, _context: NluContext) -> bool:
    return count_tokens(message.raw) > rules.guardrails.max_tokens


def _says_nothing(_rules: Rules, message: Message, _context: NluContext) -> bool:
    text = message.english[:2_000]
    return not any(map(str.isalnum, text)) and "Sc" not in map(unicodedata.category, text)


def _has_reserved_tokens(rules: Rules, message: Message, _context: NluContext) -> bool:
    reserved = _in_small_letters(rules.guardrails.reserved_tokens)
    is_changed = message.raw != message.text
    return _imitates_a_role(message.text, reserved) or (
        is_changed and _imitates_a_role(message.raw, reserved)
    )


@lru_cache(maxsize=64)
def _in_small_letters(tokens: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(token.lower() for token in tokens)


def _imitates_a_role(text: str, reserved: Iterable[str]) -> bool:
    folded = text.lower()
    if any(map(folded.__contains__, reserved)):
        return True
    return any(map(text.__contains__, _OF_MARKERS)) and _ROLE_MARKERS.search(text) is not None


def _is_too_short(rules: Rules, message: Message, context: NluContext) -> bool:
    """Return whether a message is shorter than `min_characters` and can't answer a question or select a row."""
    text, question = message.english, context.question
    if len(text) >= rules.guardrails.min_characters:
        return False
    if question.confirming or question.options or context.shown is not None:
        return not (text.isdigit() or text.lower() in _SINGLE_WORDS)
    return question.slot is None or not text.isalnum()


def _is_repeated(_rules: Rules, message: Message, context: NluContext) -> bool:
    """Return whether a message repeats the user's last one, unless a question is open or the user has clicked."""
    said_before = message.text.casefold() == clean(context.previous).casefold()
    return said_before and not context.question.is_open and not _has_clicked(context)


def _has_clicked(context: NluContext) -> bool:
    """Return whether the assistant spoke twice in a row, because clicks don't add user messages."""
    last = context.history.recent(2)
    return len(last) == 2 and last[0].role != "user"


def _is_foreign(rules: Rules, message: Message, _context: NluContext) -> bool:
    return not is_supported(message.text, rules.languages, rules.own)


UNREADABLE: tuple[tuple[Rejection, Check], ...] = (
    (Rejection.TOO_LONG, _is_too_long),
    (Rejection.EMPTY, _says_nothing),
    (Rejection.RESERVED_TOKENS, _has_reserved_tokens),
)
"""Checks that also apply to commands."""
UNLIKELY: tuple[tuple[Rejection, Check], ...] = (
    (Rejection.TOO_SHORT, _is_too_short),
    (Rejection.REPEATED, _is_repeated),
    (Rejection.UNSUPPORTED_LANGUAGE, _is_foreign),
)
"""Checks that don't apply to commands."""


def make_unreadable(setup: ReaderSetup) -> Reader:
    config = setup.domain.config
    return Rules(config.guardrails, config.language.supported, UNREADABLE).read


def make_unlikely(setup: ReaderSetup) -> Reader:
    config = setup.domain.config
    examples = [text for flow in setup.system1.flows.values() for text in flow.examples]
    answers = [text for answer in setup.domain.answers for text in answer.examples]
    own = frozenset(word.lower() for text in (*examples, *answers) for word in _WORD.findall(text))
    return Rules(config.guardrails, config.language.supported, UNLIKELY, own).read


_WORD = re.compile(r"(?<!\w)[^\W\d_]+(?:['’][^\W\d_]+)*(?!\w)")
"""A word without digits, because a reference such as UW7Z5W has no language."""
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
_LANGUAGES_OF: dict[str, list[str]] = {}
for _code, _words in _STOP_WORDS.items():
    for _one in _words:
        _LANGUAGES_OF.setdefault(_one, []).append(_code)


@lru_cache(maxsize=2048)
def _script(char: str) -> str:
    name = unicodedata.name(char, "")
    word = name.split(" ", 1)[0]
    return "CJK" if word in {"HIRAGANA", "KATAKANA"} else word


def is_supported(text: str, languages: tuple[str, ...], own: Collection[str] = ()) -> bool:
    """Return whether a text may be in one of the languages. Unknown codes disable the check.

    `own`: words that count as words of `languages`, even if they also exist in other languages.
    """
    if not _SCRIPTS.keys() >= set(languages):
        return True
    if not text.isascii() and not _in_scripts(text, {_SCRIPTS[code] for code in languages}):
        return False
    words = _WORD.findall(text[:_READ])
    if len(words) < _FEW_WORDS:
        return True
    known = [code for code in languages if code in _STOP_WORDS]
    said = [*map(str.lower, words)]
    of_some = [codes for codes in map(_LANGUAGES_OF.get, said) if codes is not None]
    if not known or 2 * len([codes for codes in of_some if known[0] in codes]) > len(of_some):
        return True
    hits = Counter(code for codes in of_some for code in codes)
    stop_words = frozenset[str]().union(*(_STOP_WORDS[code] for code in known))
    ours = max(hits[code] for code in known) + sum(word in own for word in said if word not in stop_words)
    others = max((count for code, count in hits.items() if code not in languages), default=0)
    return others < 2 or ours * 2 > others


def _in_scripts(text: str, scripts: set[str]) -> bool:
    letters = [char for char in text[:_READ] if char.isalpha()]
    inside = sum(1 for char in letters if (char.isascii() and "LATIN" in scripts) or _script(char) in scripts)
    return not letters or inside * 2 >= len(letters)
