"""A policy's steps, in order. The last step runs only after a failure (PX-1)."""

from orchestrator.pex.steps.check import check, check_slots, verify, verify_results
from orchestrator.pex.steps.invoke import invoke
from orchestrator.pex.steps.recover import recover
from orchestrator.pex.steps.results import complete, results
from orchestrator.pex.steps.review import review

STEPS = (check, review, check_slots, invoke, results, verify_results, complete, verify, recover)
