"""The steps of a turn between the phases `load` and `record`, in order."""

from orchestrator.agent.running import Step
from orchestrator.agent.steps.archive import archive
from orchestrator.agent.steps.carry_out import carry_out
from orchestrator.agent.steps.dispatch import dispatch
from orchestrator.agent.steps.understand import understand

STEPS: tuple[Step, ...] = (understand, dispatch, carry_out, archive)
