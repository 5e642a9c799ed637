"""Conformal prediction: intervals and sets whose coverage is proved, whatever the model."""
