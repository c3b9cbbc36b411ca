"""Whether a text is in a supported language: its script first, then its commonest words.

A guard, not an identification: short and unclear texts pass. Languages are ISO 639-1 codes.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

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
