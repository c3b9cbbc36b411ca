"""Training examples: the domain's examples with filled placeholders, and `universal_examples.txt`."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import count, cycle

from orchestrator.dialogue.specification import FlowSpec, SlotSpec
from orchestrator.nlu.system1.extract.extractor import is_boolean, kinds_of
from orchestrator.nlu.system1.extract.found import CODE, DATE, MONEY, NAME, NUMBER, QUOTE, TIME
from orchestrator.nlu.system1.extract.gazetteer import Gazetteer

PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")
VARIANTS = 3
_SAMPLES: dict[str, tuple[str, ...]] = {
    DATE: ("tomorrow", "May 3rd", "next Friday", "2031-04-12"),
    TIME: ("7 pm", "10:30", "half past six"),
    MONEY: ("$50", "200 euros", "1,500 dollars"),
    NUMBER: ("2", "three", "15"),
    CODE: ("PX4T9Z", "AB12CD", "7KQ2MN"),
    NAME: ("Sandra Quill", "Blue Harbor", "Orlane"),
    QUOTE: ('"back soon"', '"two of them"'),
}


@dataclass(frozen=True, slots=True)
class Example:
    text: str
    label: str


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
    return ("please call me back",) if slot.is_free_text else _SAMPLES[NAME]


def fill(template: str, samples: Mapping[str, Sequence[str]], turn: int) -> str:
    """Fill a template's placeholders with sample values. Unknown placeholders become plain words.

    `turn`: index of the first sample value to use.
    """
    places = count(turn)

    def sample(found: re.Match[str]) -> str:
        values = samples.get(found[1])
        return values[next(places) % len(values)] if values else found[1].replace("_", " ")

    return PLACEHOLDER.sub(sample, template)


def flow_examples(flow: FlowSpec, gazetteer: Gazetteer) -> Iterator[Example]:
    samples = {name: sample_values(slot, gazetteer) for name, slot in flow.slots.items()}
    # Users refer to the latest results with "that": "modify that booking".
    pointing = [one.replace(" my ", " that ") for one in flow.examples if " my " in one]
    for template in (*flow.examples, *pointing):
        turns = VARIANTS if PLACEHOLDER.search(template) else 1
        for turn in range(turns):
            yield Example(fill(template, samples, turn), f"flow:{flow.dact}")


def typical_values(flows: Iterable[FlowSpec], gazetteer: Gazetteer) -> list[str]:
    """Return a few sample values for the domain's slots, for use in the universal examples."""
    slots = [slot for flow in flows for slot in flow.slots.values()]
    usual = [slot for slot in slots if not (is_boolean(slot) or slot.is_free_text)]
    return list(dict.fromkeys(text for slot in usual for text in list(sample_values(slot, gazetteer))[:2]))


def lower_words(texts: Iterable[str]) -> frozenset[str]:
    """Return the words that `texts` contain in lowercase, which are ordinary words and not names."""
    return frozenset(word for text in texts for word in re.findall(r"[^\W\d_]+", text) if word.islower())


@cache
def kind_texts() -> Mapping[str, tuple[str, ...]]:
    """Return the texts of the universal examples, by kind.

    The file has a section for each kind, and bars or line breaks between texts.
    """
    text = files("orchestrator.nlu.system1.training").joinpath("universal_examples.txt").read_text("utf-8")
    sections = (section.partition("]") for section in text.split("[")[1:])
    return {
        kind: tuple(said.strip() for said in re.split(r"[|\n]", body) if said.strip())
        for kind, _, body in sections
    }


def kind_examples(values: Sequence[str]) -> Iterator[Example]:
    """Yield the universal examples with `{*}` replaced with typical values from the domain, in turn."""
    turns = cycle(values or ("something",))
    for kind, texts in kind_texts().items():
        for text in texts:
            for _variant in range(2 if "{*}" in text else 1):
                yield Example(re.sub(r"\{\*\}", lambda _: next(turns), text), f"kind:{kind}")
