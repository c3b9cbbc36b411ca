"""Directives, redo chains and items, in process and on workers (IF-1 … IF-8, IF-10)."""

from __future__ import annotations

from itertools import pairwise

import pytest

from internal_flows.directives import REDO_NOT_HERE
from orchestrator.errors import Refused
from orchestrator.ports.runs.records import NewRun
from orchestrator.ports.runs.status import ItemStatus, RedoStatus, RunStatus
from orchestrator.types import DEFAULT_TENANT
from tests.contract.internal.conftest import OnWorkers, Runner

SKIP = {"call": "skip", "with": {"reason": "not today"}}
SKIP_JSON = {"json": {"_aipack_": {"kind": "Skip", "reason": "not today"}}}
REDO = {"call": "redo_run"}
REDO_JSON = {"json": {"_aipack_": {"kind": "Redo"}}}


async def scripted(runner: Runner, inputs=("a", "b"), **parameters):
    chain = await runner.run(
        runner.catalogue.new_run("scripted", inputs=tuple(inputs), parameters=parameters)
    )
    return chain[0], await runner.items(chain[0].run_id), chain


async def test_stages_that_say_nothing_pass_their_argument_on(runner: Runner) -> None:
    """IF-1"""
    record, items, _ = await scripted(runner)

    expected = [{"item": given, "data": given, "run_data": None, "model": None} for given in "ab"]
    assert record.status is RunStatus.DONE
    assert record.closing == expected
    assert [(item.status, item.output) for item in items] == [(ItemStatus.DONE, one) for one in expected]
    assert (record.redo_count, record.progress.total, record.progress.done) == (None, 2, 2)


async def test_a_run_without_inputs_closes(runner: Runner) -> None:
    """IF-1"""
    record, items, _ = await scripted(runner, inputs=())

    assert (record.status, record.closing, items) == (RunStatus.DONE, [], [])


@pytest.mark.parametrize("said", [SKIP, SKIP_JSON])
async def test_skip_from_before_all_skips_the_run(runner: Runner, said) -> None:
    """IF-3: no item starts, and the reason is stored."""
    record, items, _ = await scripted(runner, before_all=said)

    assert (record.status, record.reason, items) == (RunStatus.SKIPPED, "not today", [])


async def test_skip_from_data_skips_the_item(runner: Runner) -> None:
    """IF-3: `work` and `output`, which would fail, do not run."""
    record, items, _ = await scripted(runner, data=SKIP_JSON, work={"fail": "x"}, output={"fail": "x"})

    assert [(item.status, item.reason) for item in items] == [(ItemStatus.SKIPPED, "not today")] * 2
    assert (record.status, record.closing, record.progress.skipped) == (RunStatus.DONE, [None, None], 2)


async def test_how_many_items_run_at_once_is_no_option_of_one_item(runner: Runner) -> None:
    """IF-6, IF-7: the error describes the right place of the option."""
    said = {"call": "data_response", "with": {"options": {"concurrency": 1}}}
    record, items, _ = await scripted(runner, inputs=("a",), data=said)

    assert record.status is RunStatus.FAILED
    assert items[0].error is not None
    assert "before_all_response()" in items[0].error


async def test_skip_from_output_is_recorded_as_a_skip(runner: Runner) -> None:
    """IF-3"""
    record, items, _ = await scripted(runner, output=SKIP)

    assert {(item.status, item.reason, item.output) for item in items} == {
        (ItemStatus.SKIPPED, "not today", None)
    }
    assert record.status is RunStatus.DONE


@pytest.mark.parametrize(("stage", "said"), [("data", REDO), ("output", REDO_JSON)])
async def test_redo_from_an_item_fails_with_an_explicit_error(runner: Runner, stage, said) -> None:
    """IF-4: the redo count does not change."""
    record, items, chain = await scripted(runner, **{stage: said})

    assert {item.error for item in items} == {f"{stage}: {REDO_NOT_HERE}"}
    assert (record.status, record.redo, len(chain)) == (RunStatus.FAILED, RedoStatus.NONE, 1)


@pytest.mark.parametrize(
    ("stage", "said"),
    [
        ("work", SKIP),
        ("work", REDO_JSON),
        ("after_all", SKIP),
        ("after_all", SKIP_JSON),
        ("data", {"call": "before_all_response"}),
        ("output", {"call": "data_response"}),
        ("before_all", {"call": "data_response"}),
        ("after_all", {"call": "before_all_response"}),
    ],
)
async def test_a_directive_out_of_its_place_is_an_error(runner: Runner, stage, said) -> None:
    """IF-7: the error names the stage and the directive."""
    record, items, _ = await scripted(runner, inputs=("a",), **{stage: said})

    error = next((item.error for item in items if item.error), record.error)
    named = (
        {"Redo": "redo_run", "Skip": "skip"}.get(said["json"]["_aipack_"]["kind"])
        if "json" in said
        else said["call"]
    )
    assert record.status is RunStatus.FAILED
    assert error is not None
    assert error.startswith(f"{stage}: ")
    assert named in error


@pytest.mark.parametrize(
    ("table", "what"),
    [
        ({"kind": "Skip", "why": "x"}, "'why'"),
        ({"kind": "Skip", "reason": 3}, "'reason'"),
        ({"kind": "Redo", "times": 2}, "'times'"),
        ({"kind": "Restart"}, "'Restart'"),
        ({"kind": 7}, "kind"),
        ({}, "kind"),
        ("Skip", "kind"),
        ({"kind": "BeforeAllResponse", "inputs": "a"}, "'inputs'"),
        ({"kind": "BeforeAllResponse", "options": [1]}, "'options'"),
        ({"kind": "BeforeAllResponse", "options": {"speed": 9}}, "'speed'"),
        ({"kind": "BeforeAllResponse", "options": {"concurrency": 0}}, "'concurrency'"),
    ],
)
async def test_a_malformed_table_is_an_error(runner: Runner, table, what) -> None:
    """IF-7"""
    record, items, _ = await scripted(runner, before_all={"json": {"_aipack_": table}})

    assert (record.status, items) == (RunStatus.FAILED, [])
    assert record.error is not None
    assert record.error.startswith("before_all: ")
    assert what in record.error


async def test_keys_beside_the_tag_are_an_error(runner: Runner) -> None:
    """IF-7"""
    record, _, _ = await scripted(runner, before_all={"json": {"_aipack_": {"kind": "Redo"}, "more": 1}})

    assert record.status is RunStatus.FAILED
    assert "more" in (record.error or "")


async def test_before_all_overrides_inputs_options_and_data(runner: Runner) -> None:
    """IF-6"""
    override = {"inputs": ["x", "y", "z"], "options": {"model": "small", "concurrency": 2}, "data": {"k": 1}}
    record, items, _ = await scripted(runner, before_all={"call": "before_all_response", "with": override})

    assert [item.input for item in items] == ["x", "y", "z"]
    assert [item.output["model"] for item in items] == ["small"] * 3
    assert [item.output["run_data"] for item in items] == [{"k": 1}] * 3
    assert record.status is RunStatus.DONE


async def test_an_override_to_no_inputs_closes_the_run(runner: Runner) -> None:
    """IF-6"""
    record, items, _ = await scripted(
        runner, before_all={"call": "before_all_response", "with": {"inputs": []}}
    )

    assert (record.status, items, record.closing) == (RunStatus.DONE, [], [])


async def test_data_overrides_one_item(runner: Runner) -> None:
    """IF-6"""
    table = {"_aipack_": {"kind": "DataResponse", "input": "other", "options": {"model": "big"}, "data": [1]}}
    _, items, _ = await scripted(runner, inputs=("a",), data={"json": table})

    assert items[0].output == {"item": "other", "data": [1], "run_data": None, "model": "big"}
    assert items[0].input == "a"


async def test_without_data_an_override_passes_its_input_on(runner: Runner) -> None:
    """IF-6"""
    _, items, _ = await scripted(
        runner, inputs=("a",), data={"call": "data_response", "with": {"input": "o"}}
    )

    assert (items[0].output["item"], items[0].output["data"]) == ("o", "o")


@pytest.mark.parametrize("stage", ["before_all", "data", "work", "output", "after_all"])
async def test_a_stage_that_raises_fails_its_item_or_run(runner: Runner, stage) -> None:
    """IF-1"""
    record, items, _ = await scripted(runner, **{stage: {"fail": "broken"}})

    expected = f"{stage}: ValueError: broken"
    assert record.status is RunStatus.FAILED
    if stage in {"before_all", "after_all"}:
        assert record.error == expected
    else:
        assert {item.error for item in items} == {expected}
        assert record.error == "2 of 2 items failed"


async def test_a_failing_item_leaves_the_others_alone(runner: Runner) -> None:
    """IF-8: also, inputs are typed."""
    given = (1, 2, "three", 4, 5)
    [record] = await runner.run(
        runner.catalogue.new_run("doubling", inputs=given, parameters={"fail": [2], "skip": [4]})
    )
    items = await runner.items(record.run_id)

    assert [item.output for item in items] == [2, None, None, None, 10]
    assert [item.status.value for item in items] == ["done", "failed", "failed", "skipped", "done"]
    assert "the input is invalid" in (items[2].error or "")
    assert (record.progress.done, record.progress.failed, record.progress.skipped) == (2, 2, 1)


async def test_a_stage_that_takes_too_long_fails(runner: Runner) -> None:
    """IF-6"""
    [record] = await runner.run(runner.catalogue.new_run("late", inputs=(1,)))

    [item] = await runner.items(record.run_id)
    assert item.error == "work: timed out after 0.05 s"


@pytest.mark.parametrize(("stage", "said"), [("before_all", REDO), ("after_all", REDO_JSON)])
async def test_redo_is_accepted_from_both_ends_of_a_run(runner: Runner, stage, said) -> None:
    """IF-4, IF-5: a chain that always requests a redo ends at the ceiling. A redo from `before_all` starts no items."""
    run = runner.catalogue.new_run("endless", inputs=(1,), parameters={stage: said})
    chain = await runner.run(run)
    items = await runner.items(chain[0].run_id)

    assert [record.redo_count for record in chain] == [None, 1, 2]
    assert [record.redo.value for record in chain] == ["scheduled", "scheduled", "ceiling_reached"]
    assert {record.status for record in chain} == {RunStatus.DONE}
    assert "limit" in (chain[-1].reason or "")
    assert len(items) == (0 if stage == "before_all" else 1)


async def test_a_chain_counts_and_keeps_its_pace(runner: Runner) -> None:
    """IF-5: reruns are at least 500 ms apart. A new run starts again without a count."""
    run = runner.catalogue.new_run("chained", inputs=("a",), parameters={"until": 3})
    chain = await runner.run(run)
    times = [(await runner.items(record.run_id))[0].output["at"] for record in chain]

    assert [record.redo_count for record in chain] == [None, 1, 2, 3]
    assert chain[-1].closing["count"] == 3
    assert min(later - earlier for earlier, later in pairwise(times)) >= 0.5
    assert (await runner.run(run))[0].redo_count is None


async def test_a_rerun_that_fails_can_be_redone_by_hand(runner: Runner) -> None:
    """IF-5: the earlier context remains available, and the count is not used up."""
    run = runner.catalogue.new_run("chained", inputs=("a",), parameters={"until": 2, "fail_at": 1})
    chain = await runner.run(run)
    assert [(record.redo_count, record.status.value) for record in chain] == [(None, "done"), (1, "failed")]

    again = await runner.redo(chain[-1].run_id)

    assert [(record.redo_count, record.status.value) for record in again] == [(1, "failed")]


async def test_a_first_run_that_fails_begins_anew_by_hand(runner: Runner) -> None:
    """IF-5"""
    chain = await runner.run(runner.catalogue.new_run("chained", parameters={"fail_at": 0}))

    [again] = await runner.redo(chain[0].run_id)

    assert (again.redo_count, again.status) == (None, RunStatus.FAILED)


async def test_past_the_ceiling_one_more_can_be_had_by_hand(runner: Runner) -> None:
    """IF-5"""
    chain = await runner.run(runner.catalogue.new_run("endless"))

    again = await runner.redo(chain[-1].run_id)

    assert [record.redo_count for record in again] == [3]
    assert again[0].redo is RedoStatus.CEILING_REACHED


async def test_a_lifted_ceiling_stops_nothing(runner: Runner) -> None:
    """IF-5"""
    chain = await runner.run(runner.catalogue.new_run("lifted", parameters={"until": 4}))

    assert [record.redo_count for record in chain] == [None, 1, 2, 3, 4]


async def test_a_run_at_work_cannot_be_redone(on_workers) -> None:
    """IF-5"""
    run = on_workers.catalogue.new_run("doubling", inputs=(1,), parameters={"takes_s": 30})
    started = await on_workers.start((run,))

    with pytest.raises(Refused):
        await on_workers.runs.redo(run.tenant_id, started.runs["doubling"])
    await on_workers.runs.cancel(run.tenant_id, started.runs["doubling"])


async def test_a_run_that_waits_for_another_graph_is_blocked_with_it(on_workers: OnWorkers) -> None:
    """IF-9: `after` names an existing run. Rerunning that run makes the other wait again."""
    slow = NewRun("doubling", inputs=(1,), parameters={"takes_s": 30})
    first = (await on_workers.runs.start((slow,))).runs["doubling"]
    second = (await on_workers.runs.start((NewRun("scripted", after=first),))).runs["scripted"]
    await on_workers.runs.cancel(DEFAULT_TENANT, first)
    blocked = await on_workers.runs.get(DEFAULT_TENANT, second)
    again = await on_workers.runs.redo(DEFAULT_TENANT, first)
    waiting = await on_workers.runs.get(DEFAULT_TENANT, second)

    assert (blocked.status, blocked.reason) == (RunStatus.BLOCKED, "doubling is cancelled")
    assert waiting.status is RunStatus.WAITING
    await on_workers.runs.cancel(DEFAULT_TENANT, again.runs["doubling"])
