"""Policies of Internal flows. The domain adds none to the shared housekeeping."""
