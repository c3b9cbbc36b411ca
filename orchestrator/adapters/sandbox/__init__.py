"""Run model-written Python and SQL in separate processes that can only compute."""

from orchestrator.adapters.sandbox.process import Layer, PythonSandbox, SqlSandbox

__all__ = ["Layer", "PythonSandbox", "SqlSandbox"]
