"""Targets: classes or numbers, one column or several."""
