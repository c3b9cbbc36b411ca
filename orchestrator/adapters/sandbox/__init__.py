"""Runs Python and SQL that a model wrote in processes of their own that can do nothing but compute."""

from orchestrator.adapters.sandbox.process import Layer, PythonSandbox, SqlSandbox

__all__ = ["Layer", "PythonSandbox", "SqlSandbox"]
