"""Any table -> codes: small whole numbers, one column after another."""

from everytree.tables.schema import Schema

__all__ = ["Schema"]
