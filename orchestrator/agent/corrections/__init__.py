"""Corrections: the effect of a replaced value on a flow, its plan, and committed calls.

Dependencies between the values of one flow are in `dialogue.changes.correction`.
"""
