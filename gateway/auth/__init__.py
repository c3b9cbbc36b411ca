"""Authentication, authorization, rate limits, and the rule for listening addresses."""
