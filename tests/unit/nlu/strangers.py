"""Messages from a grammar over word lists: some are not confirmations, others are forbidden, past or reported requests.

The words were chosen independently of the language lists and the cues of scopes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product

_THINGS = ("it", "that", "this", "the last one", "the whole idea")
_SEEMING = ("was", "is", "looks", "sounded", "would have been", "used to be")
_JUDGED = ("great", "ok", "fine", "perfect", "awful", "lovely", "too early", "so expensive")
_BEGINNINGS = ("yes", "ok", "okay", "sure", "fine", "good", "yeah", "perfect", "alright", "right")
_QUESTIONS = ("how much is it", "when does it land", "which airline is that", "is it refundable", "who pays for this",
              "what happens next", "can I still change my mind", "do I get a receipt")  # fmt: skip
_CONDITIONS = ("but later", "if it can be refunded", "only for my brother", "as soon as my boss agrees",
               "unless it rains",
               "provided that it is cheap", "with a window seat", "and a hotel", "on another day",
               "for six of us")  # fmt: skip
_DOUBTS = ("maybe", "perhaps", "I guess", "I suppose", "probably", "hopefully", "I doubt it,", "not sure,")
_HALF = ("yes", "ok", "so", "that works", "it is fine", "we should")
_SPEAKERS = ("my wife", "he", "the man at the desk", "everybody", "my boss")
_SAID = ("said yes", "would say ok", "told me to go ahead", "says it is fine", "agreed yesterday")
_OTHER = ("what is the weather like", "tell me a joke", "who are you", "start again", "show me the others",
          "hello there",
          "bye", "never mind", "one moment", "let me think", "I have to ask my husband", "why", "hm", "thanks",
          "thank you so much", "please", "stop", "wait", "no way", "not like this", "cheaper", "earlier",
          "later please",
          "the other one", "another one", "two", "I do not know", "whatever", "lol", "what", "not yet", "nope", "nah",
          "I changed my mind", "forget it", "that will not do", "too much", "no thanks", "anything else")  # fmt: skip


def not_a_yes() -> list[str]:
    """Return 500 messages that confirm nothing."""
    parts: Sequence[Iterator[str]] = (
        (" ".join(one) for one in product(_THINGS, _SEEMING, _JUDGED)),
        (f"{first}{mark} {asked}" for first, mark, asked in product(_BEGINNINGS, (",", ""), _QUESTIONS)),
        (f"{first} {rest}" for first, rest in product(_BEGINNINGS[:8], _CONDITIONS)),
        (f"{doubt} {rest}" for doubt, rest in product(_DOUBTS, _HALF)),
        (f"{who} {said}" for who, said in product(_SPEAKERS, _SAID)),
        iter(_OTHER),
    )
    made = list(dict.fromkeys(one for part in parts for one in part))
    return made[:500] if len(made) >= 500 else made


_FORBIDDING = ("don't {}", "do not {}", "please don't {}", "never {}", "no need to {}", "you should not {}",
               "I decided not to {}", "I don't want to {}", "under no circumstances {}", "I would rather not {}",
               "there is no reason to {}", "please never {}", "we don't need to {}",
               "it is not necessary to {}")  # fmt: skip
_DEEDS = ("book a flight to Rome tomorrow", "cancel my booking", "add a bag", "book a flight from Oslo to Madrid",
          "cancel the flight", "book anything")  # fmt: skip
_PAST = ("I already {}", "yesterday I {}", "I have {}", "we {} last week", "my sister {}", "I have just {}")
_DONE = ("booked a flight to Rome", "cancelled my booking", "added a bag", "booked a flight from Oslo to Madrid",
         "cancelled the flight")  # fmt: skip
_REPORTING = ("my colleague wants to know whether you can {}", "he asked if you {}", "my boss says I should {}",
              "they told me to {}", "someone said you could {}", "my mother thinks I should {}", "what if I {}",
              "what happens if I {}", "she wonders whether to {}", "I was told to {}", "what would happen if we {}",
              "my friend asked me to {}")  # fmt: skip


def not_requested() -> list[tuple[str, str]]:
    """Return at least 180 messages without a request, each with the first word of the task that it mentions."""
    made = [
        (frame.format(deed), deed.split()[0])
        for frames, deeds in ((_FORBIDDING, _DEEDS), (_REPORTING, _DEEDS))
        for frame, deed in product(frames, deeds)
    ]
    verbs = {"booked": "book", "cancelled": "cancel", "added": "add"}
    made += [(frame.format(deed), verbs[deed.split()[0]]) for frame, deed in product(_PAST, _DONE)]
    return list(islice(made, 400))
