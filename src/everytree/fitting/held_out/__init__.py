"""Rows that trees were not grown on, and all that is decided or judged by them."""
