"""The steps of a policy in order, one file each. The last step runs only after a failure (PX-1)."""

from orchestrator.pex.steps.check import check, check_slots
from orchestrator.pex.steps.complete import complete
from orchestrator.pex.steps.invoke import invoke
from orchestrator.pex.steps.recover import recover
from orchestrator.pex.steps.results import results
from orchestrator.pex.steps.review import review
from orchestrator.pex.steps.verify import verify, verify_results

STEPS = (check, review, check_slots, invoke, results, verify_results, complete, verify, recover)
