"""Models for other programs: plain tree tables and ONNX graphs."""

from typing import TYPE_CHECKING, Any

from everytree.export.averaged import AveragedTrees
from everytree.export.inputs import onnx_inputs
from everytree.export.summed import SummedTrees, to_tables
from everytree.export.tables import TreeTable

if TYPE_CHECKING:
    from everytree.export.onnx_model import to_onnx

__all__ = ["AveragedTrees", "SummedTrees", "TreeTable", "onnx_inputs", "to_onnx", "to_tables"]


def __getattr__(name: str) -> Any:
    """Import onnx only when a graph is requested: tables need nothing but NumPy."""
    if name != "to_onnx":
        raise AttributeError(f"module 'everytree.export' has no attribute {name!r}")
    try:
        from everytree.export.onnx_model import to_onnx
    except ImportError as error:
        if (error.name or "").split(".")[0] != "onnx":
            raise
        raise ImportError("graphs are made by onnx, which is not installed: pip install everytree[onnx]") from None
    return to_onnx
