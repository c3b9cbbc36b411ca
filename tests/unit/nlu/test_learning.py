"""The local classifier: deterministic training, and generalization (NL-2)."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from orchestrator.adapters.domains.folder import load_domain
from orchestrator.dialogue.flow import make_flow_class
from orchestrator.dialogue.specification import Family, FlowSpec, SlotSpec
from orchestrator.nlu.system1 import System1
from orchestrator.nlu.system1.training.learning import fit
from orchestrator.nlu.text import tokenize
from orchestrator.types import Dact
from tests.unit.nlu.flights import AIRPORTS, ANSWERS, FLOWS, nothing_open, system1, understand


# Wordings that are not in any example.
def test_training_twice_gives_the_same_weights() -> None:
    again = System1.train(FLOWS, {"airport": AIRPORTS}, ANSWERS)
    first, second = system1().classifier, again.classifier
    assert first.labels == second.labels
    assert first.places == second.places
    assert np.array_equal(first.weights, second.weights)
    assert first.sharpness == second.sharpness


def test_values_do_not_decide() -> None:
    """The same sentence with other values has the same scores."""
    one = understand("find flights from Oslo to Madrid").flows
    two = understand("find flights from Porto to Lisbon").flows
    assert one == two


def test_a_model_of_one_label_or_none_can_be_asked() -> None:
    assert fit([{"a": 1.0}], ["only"]).labels == ("only",)
    assert fit([], []).labels == ("",)


def test_a_domain_without_examples_still_knows_the_kinds() -> None:
    bare = System1.train([], {})
    assert bare.think("hello", nothing_open()).understanding.kind.value == "chitchat"


def test_internal_flows_are_never_predicted() -> None:
    """AG-7: even for their examples."""
    words = ("tidy the memory", "tidy up the memory now", "put the memory in order")
    spec = FlowSpec(Dact("tidy_memory"), "0f1", "Internal", Family.INTERNAL, examples=words)
    domain = load_domain(Path(__file__).parents[2] / "domains" / "depot").domain
    learnt = System1.for_domain(replace(domain, flows={**domain.flows, spec.dact: make_flow_class(spec)}))

    flows = {label for label in learnt.classifier.labels if label.startswith("flow:")}
    assert flows == {f"flow:{dact}" for dact in domain.flows}


def test_flows_that_are_alike_but_for_one_word_are_told_apart() -> None:
    """Six flows of one family have five examples each, and a single word differs."""
    alike = System1.for_domain(load_domain("tests/domains/parcels").domain)
    for said, dact in (("track", "track_parcel"), ("photograph", "photograph_parcel")):
        opinion = alike.opinion(f"{said} parcelquokka", nothing_open())
        assert max(opinion, key=lambda one: opinion[one]) == dact
        assert opinion[Dact(dact)] > 0.65, opinion


def test_a_code_that_has_the_form_of_two_slots_goes_where_the_words_say() -> None:
    slots = {
        "flight_number": SlotSpec("flight_number", "flight_code"),
        "booking_ref": SlotSpec("booking_ref", "booking_code"),
    }
    examples = (
        "is flight {flight_number} delayed",
        "flight status {flight_number}",
        "is booking {booking_ref} safe",
    )
    flow = FlowSpec(Dact("check"), "0f3", "Find", Family.READ, examples=examples, slots=slots)
    forms = {"booking_code": re.compile("[A-Z0-9]{6}"), "flight_code": re.compile("[A-Z]{2}[0-9]{1,4}")}
    learnt = System1.train([flow], {}, patterns=forms)
    for text, slot in (("what of flight DY4153", "flight_number"), ("what of booking DY4153", "booking_ref")):
        assert set(learnt.slots_for(text, flow, nothing_open())) == {slot}


def test_what_two_slots_list_is_none_of_what_another_lists() -> None:
    """Otherwise, “is there one in the evening” would be a question about the cabins."""
    times, cabins = ("morning", "evening"), ("economy", "business")
    slots = {
        name: SlotSpec(name, "category", values=values)
        for name, values in (("time", times), ("new_time", times), ("cabin", cabins), ("new_cabin", cabins))
    }
    flow = FlowSpec(Dact("find"), "0f4", "Find", Family.READ, slots=slots)
    extractor = System1.train([flow], {}).extractor
    kinds = {
        text: extractor.find(tokenize(text), nothing_open().today)[0].kind
        for text in ("morning", "evening", "economy")
    }
    assert kinds["morning"] == kinds["evening"] != kinds["economy"]
