"""From a table and a target to a model."""
