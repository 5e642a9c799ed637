"""Choice of the splits: grown trees, and imported models."""
