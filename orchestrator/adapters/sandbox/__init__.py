"""Sandboxes that run model-written Python and SQL in separate processes."""

from orchestrator.adapters.sandbox.process import Layer, PythonSandbox, SqlSandbox

__all__ = ["Layer", "PythonSandbox", "SqlSandbox"]
