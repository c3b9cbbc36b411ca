"""Runs Python that a model wrote in a process of its own that can do nothing but compute."""

from orchestrator.adapters.sandbox.process import Layer, PythonSandbox

__all__ = ["Layer", "PythonSandbox"]
