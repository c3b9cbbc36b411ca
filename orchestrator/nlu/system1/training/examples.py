"""Training examples: the domain's examples with filled placeholders, and `universal_examples.txt`."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from orchestrator.dialogue.specification import FlowSpec, SlotSpec
from orchestrator.nlu.system1.extract.extractor import is_boolean, is_free_text, kinds_of, type_name
from orchestrator.nlu.system1.extract.found import CODE, DATE, MONEY, NAME, NUMBER, PAIRS, QUOTE, RANGE, TIME
from orchestrator.nlu.system1.extract.gazetteer import Gazetteer
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
    """An example message with the expected interpretation.

    `label`: the expected label of the classifier, or None if the example only trains slots. `spans`: (start,
    end, slot) in characters. `asked`: the slot of the question before the message. `dact`: the flow with the
    slots in `spans`.
    """

    text: str
    label: str | None = None
    spans: tuple[tuple[int, int, str], ...] = ()
    asked: str | None = None
    dact: Dact | None = None


def flow_label(dact: str) -> str:
    return f"flow:{dact}"


def kind_label(kind: str) -> str:
    return f"kind:{kind}"


def answer_label(name: str) -> str:
    return f"answer:{name}"


def sample_values(slot: SlotSpec, gazetteer: Gazetteer) -> Sequence[str]:
    """Choose texts that fill a slot. The choice is deterministic."""
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
    """Fill a template's placeholders with sample values. Unknown placeholders become plain words.

    `turn`: selects the sample values.
    """
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
    """Generate a flow's examples with filled placeholders, and examples for its slots."""
    samples = {name: sample_values(slot, gazetteer) for name, slot in flow.slots.items()}
    # Users refer to the latest results with "that": "modify that booking".
    pointing = [one.replace(" my ", " that ") for one in flow.examples if " my " in one]
    for template in (*flow.examples, *pointing):
        turns = VARIANTS if PLACEHOLDER.search(template) else 1
        for turn in range(turns):
            text, spans = fill(template, samples, turn)
            yield Example(text, flow_label(flow.dact), spans, dact=flow.dact)
    yield from slot_examples(flow, samples)


def slot_examples(flow: FlowSpec, samples: Mapping[str, Sequence[str]]) -> Iterator[Example]:
    """Generate examples from a flow's slots alone: answers to their questions, their names, their types."""
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


def typical_values(flows: Iterable[FlowSpec], gazetteer: Gazetteer) -> list[str]:
    """Return several texts for each value kind of the domain, for the universal examples."""
    values: dict[str, None] = {}
    for flow in flows:
        for slot in flow.slots.values():
            if not is_boolean(slot) and not is_free_text(slot):
                values |= dict.fromkeys(list(sample_values(slot, gazetteer))[:2])
    return list(values)


def lower_words(texts: Iterable[str]) -> frozenset[str]:
    """Collect words in lower case, which are ordinary words and not names."""
    return frozenset(word for text in texts for word in re.findall(r"[^\W\d_]+", text) if word.islower())


@cache
def kind_texts() -> tuple[tuple[str, str], ...]:
    """Return the kind and text of each universal example.

    The file has a section for each kind, and bars between texts.
    """
    found: list[tuple[str, str]] = []
    kind = ""
    for line in (
        files("orchestrator.nlu.system1.training")
        .joinpath("universal_examples.txt")
        .read_text("utf-8")
        .splitlines()
    ):
        if line.startswith("["):
            kind = line.strip("[]")
        elif line:
            found += ((kind, text.strip()) for text in line.split("|"))
    return tuple(found)


def kind_examples(values: Sequence[str]) -> Iterator[Example]:
    """Yield the universal examples with `{*}` replaced by typical values of the domain, in turn."""
    usable = values or ("something",)
    turn = 0
    for kind, text in kind_texts():
        for _variant in range(2 if "{*}" in text else 1):
            filled = text
            while "{*}" in filled:
                filled = filled.replace("{*}", usable[turn % len(usable)], 1)
                turn += 1
            yield Example(filled, kind_label(kind))
