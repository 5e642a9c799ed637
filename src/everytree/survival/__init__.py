"""Times until an event: the baseline hazard of a table, and relative hazards that are known before the trees."""
