"""Models: what predicts rows of codes."""
