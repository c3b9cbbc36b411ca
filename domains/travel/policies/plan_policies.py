"""Policies of Plan flows. The domain has none: a trip is searched and booked flight by flight."""
