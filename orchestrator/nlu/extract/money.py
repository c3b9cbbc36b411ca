"""Amounts of money: a number with a currency sign, code or word."""

from __future__ import annotations

import re

from orchestrator.nlu.extract.found import MONEY, Found, Reading
from orchestrator.nlu.extract.numbers import WORDS, read_words, to_number
from orchestrator.nlu.text import Utterance

CURRENCIES: dict[str, str] = {
    "$": "USD", "us$": "USD", "usd": "USD", "dollar": "USD", "dollars": "USD", "buck": "USD", "bucks": "USD",
    "€": "EUR", "eur": "EUR", "euro": "EUR", "euros": "EUR",
    "£": "GBP", "gbp": "GBP", "pound": "GBP", "pounds": "GBP", "quid": "GBP",
    "¥": "JPY", "jpy": "JPY", "yen": "JPY", "chf": "CHF", "franc": "CHF", "francs": "CHF",
    "nok": "NOK", "sek": "SEK", "dkk": "DKK", "kr": "NOK", "krone": "NOK", "kroner": "NOK", "kronor": "SEK",
    "cad": "CAD", "aud": "AUD", "inr": "INR", "₹": "INR", "rupee": "INR", "rupees": "INR",
    "zloty": "PLN", "pln": "PLN",
}  # fmt: skip
GATE = re.compile(
    r"[$€£¥₹]|\b(?:" + "|".join(name for name in CURRENCIES if name.isalpha()) + r")\b", re.IGNORECASE
)
_AMOUNT = r"\d{1,3}(?:,\d{3})+(?:\.\d{1,2})?|\d{1,12}(?:\.\d{1,2})?"
_WORDS = "|".join(sorted((name for name in CURRENCIES if name.isalpha()), key=len, reverse=True))
_SIGN_FIRST = re.compile(rf"(US\$|[$€£¥₹]|\b(?:{_WORDS})\b)\s?({_AMOUNT})(?:\s?([km])\b)?", re.IGNORECASE)
_SIGN_LAST = re.compile(rf"(?<![\w.,])({_AMOUNT})\s?([km])?\s?([$€£¥₹]|\b(?:{_WORDS})\b)", re.IGNORECASE)
_FACTORS = {"k": 1_000, "m": 1_000_000}


def find_money(utterance: Utterance) -> list[Found]:
    """Find amounts: "$50", "20 euros", "two hundred dollars". Value: {amount, currency}."""
    text = utterance.text
    if GATE.search(text) is None:
        return []
    found = [
        _found(match.start(), match.end(), match.group(2), match.group(3), match.group(1))
        for match in _SIGN_FIRST.finditer(text)
    ]
    taken = [(item.start, item.end) for item in found]
    found += [
        _found(match.start(), match.end(), match.group(1), match.group(2), match.group(3))
        for match in _SIGN_LAST.finditer(text)
        if all(match.end() <= start or match.start() >= end for start, end in taken)
    ]
    return found + _in_words(utterance)


def _found(start: int, end: int, amount: str, factor: str | None, sign: str) -> Found:
    number = to_number(amount) * _FACTORS.get((factor or "").lower(), 1)
    return Found(start, end, MONEY, Reading({"amount": number, "currency": CURRENCIES[sign.lower()]}))


def _in_words(utterance: Utterance) -> list[Found]:
    words = utterance.words
    found: list[Found] = []
    index = 0
    while index < len(words):
        if words[index] not in WORDS:
            index += 1
            continue
        last, number = read_words(words, index)
        if last < len(words) and words[last] in CURRENCIES:
            value = {"amount": number, "currency": CURRENCIES[words[last]]}
            found.append(Found(utterance.starts[index], utterance.ends[last], MONEY, Reading(value)))
        index = last
    return found
