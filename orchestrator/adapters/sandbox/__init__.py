from orchestrator.adapters.sandbox.monty import PythonSandbox
from orchestrator.adapters.sandbox.process import SqlSandbox

__all__ = ["PythonSandbox", "SqlSandbox"]
