"""Boosting: sums of small trees, each of them averaged over all its prunings."""
