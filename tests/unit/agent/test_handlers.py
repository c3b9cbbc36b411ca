"""AM-3, PX-18: message handlers take a context and an interpretation, without a simulator or a model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.agent.messages.answers import confirm, deny
from orchestrator.agent.messages.correction import take_correction
from orchestrator.agent.messages.displayed_rows import show_requested_fields
from orchestrator.dialogue.consent import read_candidate
from orchestrator.dialogue.notice import Notice, NoticeKind
from orchestrator.dialogue.records import Shown
from orchestrator.dialogue.specification import ToolUse
from orchestrator.dialogue.understanding import Mention, MessageKind, RowQuestion, Source, Understanding
from orchestrator.domain.locales import forms_for, forms_in_use
from orchestrator.types import ToolId
from tests.unit.pex.setting import SPEC, TAKE, Setting, make_setting

TAKING = replace(SPEC, confirm=True, outputs=("taken",), tools=(ToolUse(TAKE.tool_id),))


async def offered() -> Setting:
    setting = make_setting(TAKING)
    await setting.policy.execute(setting.run)
    assert is_pending(setting)
    return setting


def is_pending(setting: Setting) -> bool:
    return read_candidate(setting.context.state, setting.run.flow) is not None


def is_agreed(setting: Setting) -> bool:
    candidate = read_candidate(setting.context.state, setting.run.flow)
    return candidate is not None and candidate.agreed


def understood(kind: MessageKind, text: str, *, plain: bool = False, **slots: str) -> Understanding:
    values = {name: Mention(value, value) for name, value in slots.items()}
    return Understanding(kind, Source.SYSTEM2, text=text, plain=plain, slots=values)


async def test_a_plain_yes_grants_the_pending_call() -> None:
    setting = await offered()

    confirm(setting.context, understood(MessageKind.CONFIRMATION, "yes", plain=True))

    assert is_agreed(setting)
    assert setting.context.changes.carry_on


@pytest.mark.parametrize("text", ["it was great", "ok, how much is it", "I said yes to my wife"])
async def test_a_model_that_hears_a_yes_grants_nothing(text: str) -> None:
    setting = await offered()

    confirm(setting.context, understood(MessageKind.CONFIRMATION, text))

    assert not is_agreed(setting)
    assert not setting.context.changes.carry_on
    assert [part.kind for part in setting.context.changes.messages if isinstance(part, Notice)] == [
        NoticeKind.SAY_YES
    ]


async def test_a_yes_with_another_value_makes_a_new_offer_of_it() -> None:
    setting = await offered()

    confirm(setting.context, understood(MessageKind.CONFIRMATION, "yes", plain=True, place="cellar"))

    assert not is_agreed(setting)
    assert setting.run.flow.value("place") == "cellar"


async def test_a_no_and_a_correction_drop_the_pending_call() -> None:
    for handle, message in (
        (deny, understood(MessageKind.DENIAL, "no")),
        (take_correction, understood(MessageKind.CORRECTION, "the cellar", place="cellar")),
    ):
        setting = await offered()

        handle(setting.context, message)

        assert not is_pending(setting)
        assert setting.things.calls == []


@pytest.mark.parametrize("each", [False, True])
async def test_fields_of_rows_are_displayed_in_the_users_language(each: bool) -> None:
    setting = await offered()
    state, dact = setting.context.state, setting.run.flow.spec.dact
    state.note_shown(Shown(ToolId("find"), dact, "fare", [{"fare": "Light", "refundable": True}]))
    asked = replace(
        understood(MessageKind.DIGRESSION, "are they refundable?"),
        rows=RowQuestion(fields=("refundable",), each=each),
    )
    before = forms_in_use.set(forms_for("de", "de"))
    try:
        assert show_requested_fields(setting.context, asked)
    finally:
        forms_in_use.reset(before)

    (notice,) = setting.context.changes.messages
    assert isinstance(notice, Notice)
    assert notice.kind is NoticeKind.ROW_FIELDS
    assert notice.values["fields"][0]["value"] == ("refundable ja" if each else "ja")
