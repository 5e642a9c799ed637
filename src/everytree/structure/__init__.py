"""Who chooses the splits."""
