"""Corrections: the effects of a changed value on a flow, its plan, and committed calls.

`dialogue.changes.correction` handles dependencies between the values of one flow.
"""
