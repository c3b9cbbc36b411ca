"""Where names stand is learnt from what users said."""

from dataclasses import replace

from orchestrator.dialogue.specification import Family, FlowSpec, SlotSpec
from orchestrator.nlu.text import tokenize
from orchestrator.nlu.training.examples import Example
from orchestrator.types import Dact
from parley.evaluation.name_spans import learn_spans


def test_names_in_small_letters_are_found_by_the_words_around_them() -> None:
    """None of the names is in a list or written with capitals."""
    flow = FlowSpec(Dact("play"), "0f2", "Music", Family.READ, slots={"song": SlotSpec("song", "base")})
    names = ["yellow river", "deep water", "cold moon", "old road", "sweet home", "dark star"]
    forms = ["please play {} for me", "put on the song {} now", "i want to hear {} again"]
    examples = [
        Example(
            form.format(name),
            None,
            ((form.index("{"), form.index("{") + len(name), "song"),),
            None,
            flow.dact,
            True,
        )
        for name in names
        for form in forms
    ] * 2
    examples += [
        Example(text, None, (), None, flow.dact, True) for text in ("stop it now", "what else is there")
    ]
    tagger = learn_spans(
        [*examples, *(replace(one, text=one.text + " please") for one in examples)], {flow.dact: flow}
    )
    assert tagger is not None
    found = tagger.find(tokenize("put on the song silver lake now"))
    assert [(one.reading.value, one.kind) for one in found] == [("silver lake", "name")]


def test_too_few_names_teach_nothing_about_where_others_stand() -> None:
    flow = FlowSpec(Dact("play"), "0f2", "Music", Family.READ, slots={"song": SlotSpec("song", "base")})
    assert learn_spans([Example("play it", None, (), None, flow.dact, True)], {flow.dact: flow}) is None
