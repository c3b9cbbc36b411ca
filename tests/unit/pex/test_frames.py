"""Tier 1 of failure (AG-6): a broken frame is repaired in a few attempts, first without a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from orchestrator.dialogue.records import Frame
from orchestrator.models.engineer import PromptEngineer
from orchestrator.pex.execution import Failed
from orchestrator.pex.frames import find_fault, repair
from orchestrator.types import JsonObject
from tests.configuration import default_config
from tests.unit.pex.setting import Setting, make_setting

ROWS = [{"seen": "a hat"}, {"seen": "a cat"}]


def framed(setting: Setting, data: Any = None, **attributes: Any) -> Frame:
    """Return the state after the tools returned and a frame was created."""
    setting.run.data = {"rows": ROWS, "count": 2}
    frame = Frame("frame_1", setting.run.flow.flow_id, data, **attributes)
    setting.run.frame = setting.context.changes.frames[setting.run.flow.flow_id] = frame
    return frame


@dataclass
class Author(PromptEngineer):
    """A model with scripted choices that counts its calls."""

    choice: JsonObject | None
    asked: list[str] = field(default_factory=list)

    def can_answer(self, prompt_id: str | None) -> bool:
        return True

    async def structured(
        self, prompt_id: str, variables: JsonObject, *_: Any, **__: Any
    ) -> JsonObject | None:
        self.asked.append(variables["fault"])
        return self.choice


async def test_a_sound_frame_is_left_alone() -> None:
    setting = make_setting()
    frame = framed(setting, ROWS, display_type="table")

    assert await repair(setting.run, None) is None
    assert frame == Frame("frame_1", setting.run.flow.flow_id, ROWS, display_type="table")


async def test_an_unknown_display_type_becomes_a_plain_one() -> None:
    setting = make_setting()
    frame = framed(setting, {"seen": "a hat"}, display_type="hologram")

    assert await repair(setting.run, None) is None
    assert frame.display_type == "card"


async def test_a_page_that_is_too_long_is_cut() -> None:
    setting = make_setting()
    frame = framed(setting, ROWS * 300, display_type="table")

    assert await repair(setting.run, None) is None
    assert (len(frame.data), frame.rows) == (512, 600)


async def test_no_model_is_asked_while_something_else_helps() -> None:
    setting = make_setting()
    framed(setting, None, display_type="hologram")
    author = Author({"display_type": "card"})

    assert await repair(setting.run, author) is None
    assert author.asked == []


async def test_a_model_chooses_the_form_and_the_data_stay_those_of_the_tools() -> None:
    setting = make_setting()
    frame = framed(setting, {"mark": "pie"}, display_type="chart", error="There is no axis.")
    author = Author({"display_type": "list", "field": "rows", "data": [{"seen": "something invented"}]})

    assert await repair(setting.run, author) is None
    assert author.asked == ["There is no axis."]
    assert (frame.display_type, frame.data, frame.error) == ("list", ROWS, None)


async def test_a_model_that_is_of_no_help_gives_way_to_the_plain_form() -> None:
    """The model makes three of the four attempts, but not the last one."""
    setting = make_setting()
    frame = framed(setting, {"mark": "pie"}, display_type="chart", error="There is no axis.")
    author = Author({"display_type": "table", "field": "count"})

    assert await repair(setting.run, author) is None
    assert len(author.asked) == 3
    assert find_fault(frame) is None


async def test_a_domain_says_how_many_attempts_there_are() -> None:
    setting = make_setting(config=default_config({"resilience": {"repair_attempts": 2}}))
    framed(setting, {"mark": "pie"}, display_type="chart", error="There is no axis.")
    author = Author({"display_type": "table", "field": "count"})

    assert await repair(setting.run, author) is None
    assert len(author.asked) == 1


async def test_attempts_are_bounded_and_a_frame_that_stays_broken_is_a_failure() -> None:
    """At most four in total. The broken frame is not displayed."""
    setting = make_setting()
    framed(setting, None, display_type="table")
    setting.run.data = {}
    author = Author({"display_type": "table", "field": "rows"})

    failed = await repair(setting.run, author)

    assert isinstance(failed, Failed)
    assert len(author.asked) <= 4
    assert setting.run.flow.flow_id not in setting.context.changes.frames
