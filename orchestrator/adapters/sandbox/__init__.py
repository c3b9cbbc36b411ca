from orchestrator.adapters.sandbox.process import Layer, PythonSandbox, SqlSandbox

__all__ = ["Layer", "PythonSandbox", "SqlSandbox"]
