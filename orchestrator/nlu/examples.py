"""Examples to learn from: the domain's own, with placeholders filled, and the universal ones.

What an example is, and how many are made of one line. Learning is elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.dialogue.specification import FlowSpec, SlotSpec
from orchestrator.nlu.extract.found import CODE, DATE, MONEY, NAME, NUMBER, PAIRS, QUOTE, RANGE, TIME
from orchestrator.nlu.extract.gazetteer import Gazetteer
from orchestrator.nlu.extract.span_types import is_boolean, is_free_text, kinds_of, type_name
from orchestrator.nlu.text import word_set
from orchestrator.types import Dact

PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")
VARIANTS = 3
_GENERAL_WORDS = word_set("number of num count name type the new is has")
_SAMPLES: dict[str, tuple[str, ...]] = {
    DATE: ("tomorrow", "May 3rd", "next Friday", "2031-04-12"),
    TIME: ("7 pm", "10:30", "half past six"),
    MONEY: ("$50", "200 euros", "1,500 dollars"),
    NUMBER: ("2", "three", "15"),
    RANGE: ("between 100 and 200", "under 300"),
    CODE: ("PX4T9Z", "AB12CD", "7KQ2MN"),
    NAME: ("Sandra Quill", "Blue Harbor", "Orlane"),
    QUOTE: ('"back soon"', '"two of them"'),
    PAIRS: ("colour: red", "size=10"),
}


@dataclass(frozen=True, slots=True)
class Example:
    """A message and what it means.

    `label`: what the classifier should say (see `classifier`), None when only the roles of its
    values are taught. `spans`: (start, end, slot) in characters. `asked`: the slot whose question it
    answers. `implied`: slot values that the whole message gives without naming them. `dact`: the
    flow whose slots the spans name.
    """

    text: str
    label: str | None = None
    spans: tuple[tuple[int, int, str], ...] = ()
    asked: str | None = None
    implied: Mapping[str, str] = field(default_factory=dict[str, str])
    dact: Dact | None = None


def flow_label(dact: str) -> str:
    return f"flow:{dact}"


def kind_label(kind: str) -> str:
    return f"kind:{kind}"


def answer_label(name: str) -> str:
    return f"answer:{name}"


def sample_values(slot: SlotSpec, gazetteer: Gazetteer) -> Sequence[str]:
    """Some texts that fill a slot, always the same ones."""
    if slot.samples:
        return slot.samples
    for kind in kinds_of(slot):
        if kind in _SAMPLES:
            return _SAMPLES[kind]
        names = gazetteer.names(kind)
        if names:
            listed = sorted(name for name in names if len(name) > 2) or sorted(names)
            stride = max(1, len(listed) // VARIANTS)
            return [
                name.title() if kind.startswith("entity:") else name for name in listed[::stride][:VARIANTS]
            ]
    if is_boolean(slot):
        return ("yes", "no")
    return ("please call me back",) if is_free_text(slot) else _SAMPLES[NAME]


def fill(
    template: str, samples: Mapping[str, Sequence[str]], turn: int
) -> tuple[str, tuple[tuple[int, int, str], ...]]:
    """Put the samples of one turn into a template's placeholders; unknown ones stay as plain words."""
    pieces: list[str] = []
    spans: list[tuple[int, int, str]] = []
    length = position = 0
    for index, match in enumerate(PLACEHOLDER.finditer(template)):
        before = template[position : match.start()]
        values = samples.get(match.group(1))
        value = values[(turn + index) % len(values)] if values else match.group(1).replace("_", " ")
        length += len(before)
        if values:
            spans.append((length, length + len(value), match.group(1)))
        length += len(value)
        pieces += (before, value)
        position = match.end()
    return "".join([*pieces, template[position:]]), tuple(spans)


def flow_examples(flow: FlowSpec, gazetteer: Gazetteer) -> Iterator[Example]:
    """The examples of one flow with its placeholders filled, and those its slots imply."""
    samples = {name: sample_values(slot, gazetteer) for name, slot in flow.slots.items()}
    for template in flow.examples:
        turns = VARIANTS if PLACEHOLDER.search(template) else 1
        for turn in range(turns):
            text, spans = fill(template, samples, turn)
            yield Example(text, flow_label(flow.dact), spans, dact=flow.dact)
    yield from role_examples(flow, samples)


def role_examples(flow: FlowSpec, samples: Mapping[str, Sequence[str]]) -> Iterator[Example]:
    """What a flow's slots alone teach about roles: answers to their questions, their names, their types."""
    for name, slot in flow.slots.items():
        if is_boolean(slot) or is_free_text(slot):
            continue
        words = name.replace("_", " ")
        forms = ["{%s}", "it's {%s}", "I said {%s}", "make it {%s}", f"{words} {{%s}}", f"the {words} is {{%s}}",
                 f"change the {words} to {{%s}}", f"with {words} {{%s}}"]  # fmt: skip
        nouns = [word for word in name.split("_") if word not in _GENERAL_WORDS]
        if nouns:
            forms += [
                f"{{%s}} {nouns[-1]}",
                f"{{%s}} {nouns[-1].removesuffix('s')}",
                f"with {{%s}} {nouns[-1]}",
            ]
        for turn, form in enumerate(forms):
            text, spans = fill(form.replace("%s", name), samples, turn)
            yield Example(text, None, spans, name if turn < 4 else None, dact=flow.dact)
    yield from _directions(flow, samples)


def _directions(flow: FlowSpec, samples: Mapping[str, Sequence[str]]) -> Iterator[Example]:
    sources = [name for name, slot in flow.slots.items() if type_name(slot) == "source"]
    targets = [name for name, slot in flow.slots.items() if type_name(slot) == "target"]
    forms: list[str] = []
    for source in sources:
        forms += [form.replace("%s", source) for form in _SOURCE_FORMS]
    for target in targets:
        forms += [form.replace("%t", target) for form in _TARGET_FORMS]
    for source in sources:
        for target in targets:
            forms += [form.replace("%s", source).replace("%t", target) for form in _BOTH_FORMS]
    for form in forms:
        for turn in range(2):
            text, spans = fill(form, samples, turn)
            yield Example(text, None, spans, dact=flow.dact)


_SOURCE_FORMS = ("from {%s}", "no, from {%s}", "leaving {%s}", "leaving from {%s}", "departing from {%s}",
                 "out of {%s}", "starting in {%s}", "I am in {%s}", "from {%s} please",
                 "from {%s} instead")  # fmt: skip
_TARGET_FORMS = ("to {%t}", "no, to {%t}", "going to {%t}", "into {%t}", "arriving in {%t}", "towards {%t}",
                 "I need to be in {%t}", "to {%t} please", "to {%t} instead", "in {%t}", "a trip to {%t}")  # fmt: skip
_BOTH_FORMS = ("from {%s} to {%t}", "to {%t} from {%s}", "{%s} to {%t}", "{%s} - {%t}", "leaving {%s} for {%t}",
               "from {%s} going to {%t}", "between {%s} and {%t}", "I want to go to {%t} from {%s}",
               "get me from {%s} to {%t}")  # fmt: skip


def lower_words(texts: Iterable[str]) -> frozenset[str]:
    """The words written in small letters somewhere: they are ordinary words, not names."""
    return frozenset(word for text in texts for word in re.findall(r"[^\W\d_]+", text) if word.islower())


CORRECTION = """
no, I meant {*}|I meant {*}|no I said {*}|sorry, {*}|actually {*}|actually, make it {*}|make that {*} instead
wait, {*} instead|not {*} but {*}|not {*}, {*}|no, to {*} instead|no, from {*}|I want to change it to {*}
change that to {*}|change it to {*} please|correction, {*}|it should be {*}|that should be {*} not {*}
that's wrong, it's {*}|that is not right, I want {*}|oops, I meant {*}|let's do {*} instead|rather {*}
I made a mistake, it's {*}|could you change it to {*}|can we make it {*}|I changed my mind, {*}|switch it to {*}
no, {*}|nope, {*}|no, on {*}|no, at {*}|{*} instead|on second thought {*}|I'd prefer {*} instead|sorry I meant to {*}
"""
CONFIRMATION = """
yes|yes please|yep|yeah|yup|sure|ok|okay|correct|that's right|right|exactly|go ahead|please do|do it|sounds good
that works|perfect|confirm|confirmed|yes that's correct|yes, go ahead|looks good|great|fine|that's fine|absolutely
of course|definitely|yes, that is right|sure thing|I agree|book it|yes do that|please go ahead|y|affirmative
that sounds great|that sounds good to me|yes it is|yes I do|yes I would|good, do that|alright|I confirm
yes, please proceed|everything is correct|that will work|okay, that works for me
"""
DENIAL = """
no|nope|nah|no thanks|no thank you|not really|no, that's wrong|that's not right|don't do that|I don't think so
incorrect|wrong|no, don't|not that one|no way|n|negative|please don't|no it isn't|no that is not correct|not quite
neither|none of them|no I don't|that is wrong|it's not correct|not now
"""
CANCELLATION = """
cancel|cancel that|cancel it|never mind|nevermind|forget it|forget about it|stop|stop this|abort|quit this
I don't want to do this anymore|I changed my mind, forget it|drop it|leave it|scrap that|let's not do this
please cancel this|I no longer want this|let's forget the whole thing|never mind that|start over|cancel this request
don't bother|no need anymore|I want to stop
"""
RESUMPTION = """
go back to the booking|let's go back|back to what we were doing|continue where we left off|resume|let's continue
continue with that|back to the first thing|return to the previous task|where were we|pick up where we left off
okay back to it|let's get back to it|can we return to the search|carry on with the other one
continue the earlier request
go back to the previous one|let's finish the other one first|resume the booking|let's resume
back to my request|now back to the other thing|let's carry on with what I asked before
"""
HELP = """
help|help me|what can you do|what can I ask you|how does this work|how do I use this|I need help|I'm lost
what are my options here|show me what you can do|can you help me|what do you do|I don't know what to do
which things can you do for me
"""
CLARIFICATION = """
why do you need that|why do you ask|why do you need to know|what do you mean|what does that mean
I don't understand the question|what do you mean by that|why is that needed|can you explain that|what is that for
why do you want to know my {*}|I don't understand|what are you asking me|could you rephrase that|huh|pardon
say that again
"""
STATUS = """
what do you still need|what is missing|how far are we|what's the status|where are we|what have you got so far
what did I tell you so far|what are we doing|what's next|is it done yet|are you done|how much is left
what information do you have|what else do you need|what do you have so far|are we done|what is still open
"""
QUESTION = """
what is the weather like|how big is it|do you know where that is|is it far|which ones do you have
what does it cost usually
do you have a list|is there a fee|how long does it take|what are the rules|can I bring my dog|who are you exactly
"""
CHITCHAT = """
hi|hello|hey|hey there|good morning|good evening|good afternoon|hi there|how are you|thanks|thank you|thanks a lot
thank you so much|thank you very much|bye|goodbye|see you|that's all|that is all for now|have a nice day
nice to meet you
what's up|you are great|lol|haha|who are you|are you a robot|tell me a joke|good night|cheers|I'm bored
you're welcome|great job|that's all I needed, thanks|no, that's all|no that is all thank you|nothing else thanks
"""
SLOT_VALUE = """
{*}|{*} please|on {*}|at {*}|it's {*}|in {*}|to {*}|from {*}|the {*}|{*} would be good|let's say {*}|make it {*}
{*} I think|I'd like {*}|I want {*}|for {*}|{*} and {*}|I prefer {*}|{*} is fine|maybe {*}|the one on {*}|{*}, {*}
"""

LATER = {
    "correction": "rather in {*}|rather on {*}|rather to {*}|I would rather have {*}|rather {*} please|then rather {*}",
    "help": "I don't know|I don't know it|no idea|I have no idea",
    "status": "how far is the plan|which steps are still to come|how is the plan going|what is left of the plan",
}

_BY_KIND = {
    "correction": CORRECTION,
    "confirmation": CONFIRMATION,
    "denial": DENIAL,
    "cancellation": CANCELLATION,
    "resumption": RESUMPTION,
    "help": HELP,
    "clarification": CLARIFICATION,
    "status": STATUS,
    "question": QUESTION,
    "chitchat": CHITCHAT,
    "slot_value": SLOT_VALUE,
}


def kind_texts() -> Iterator[tuple[str, str]]:
    """(kind, text) of every shipped example."""
    for kind, block in (*_BY_KIND.items(), *LATER.items()):
        for line in block.strip().splitlines():
            for text in line.split("|"):
                yield kind, text.strip()


def kind_examples(values: Sequence[str]) -> Iterator[Example]:
    """The shipped examples with `{*}` replaced by typical values of the domain, in turn."""
    usable = values or ("something",)
    turn = 0
    for kind, text in kind_texts():
        for _variant in range(2 if "{*}" in text else 1):
            filled = text
            while "{*}" in filled:
                filled = filled.replace("{*}", usable[turn % len(usable)], 1)
                turn += 1
            yield Example(filled, kind_label(kind))
