"""What everything stands on: kinds of arrays, checks of arguments, errors, progress."""
