"""From any table to codes: small whole numbers, column by column."""

from everytree.tables.schema import Schema

__all__ = ["Schema"]
