"""Corrections: what replacing a value does to a flow, to its plan, and to what was committed with the old value.

What the values of one flow do to each other is in `dialogue.changes.correction`.
"""
