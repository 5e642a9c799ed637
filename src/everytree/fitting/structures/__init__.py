"""Choosers of splits, each of which returns a whole model of coded rows."""
