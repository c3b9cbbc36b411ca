"""Message handlers take a context and an interpretation, without a simulator or a model (AM-3)."""

from __future__ import annotations

import pytest

from orchestrator.agent.messages.displayed_rows import show_requested_fields
from orchestrator.dialogue.notice import Notice, NoticeKind
from orchestrator.dialogue.records import Shown
from orchestrator.dialogue.understanding import MessageKind, RowQuestion, Source, Understanding
from orchestrator.domain.locales import forms_for, forms_in_use
from orchestrator.types import ToolId
from tests.unit.pex.setting import make_setting


@pytest.mark.parametrize("each", [False, True])
async def test_fields_of_rows_are_displayed_in_the_users_language(each: bool) -> None:
    setting = make_setting()
    state, dact = setting.context.state, setting.run.flow.spec.dact
    state.note_shown(Shown(ToolId("find"), dact, "fare", [{"fare": "Light", "refundable": True}]))
    rows = RowQuestion(fields=("refundable",), each=each)
    asked = Understanding(MessageKind.DIGRESSION, Source.SYSTEM2, text="are they refundable?", rows=rows)
    before = forms_in_use.set(forms_for("de", "de"))
    try:
        assert show_requested_fields(setting.context, asked)
    finally:
        forms_in_use.reset(before)

    (notice,) = setting.context.changes.messages
    assert isinstance(notice, Notice)
    assert notice.kind is NoticeKind.ROW_FIELDS
    assert notice.values["fields"][0]["value"] == ("refundable ja" if each else "ja")
