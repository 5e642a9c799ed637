"""Growing and exact posteriors in a file."""

from __future__ import annotations

import numpy as np

from everytree.exact.posterior import ExactPosterior
from everytree.files.families import check_all, read_family, read_statistics, write_family, write_statistics
from everytree.files.plain import read_plain, write_plain
from everytree.files.sections import Reader, Writer
from everytree.posterior.growing import GrowingPosterior


def write_growing(writer: Writer, grow: GrowingPosterior) -> None:
    """Write the distinct rows and their statistics: nodes and evidences follow from them."""
    write_family(writer.section("family"), grow.family)
    with grow.lock:
        writer.put(seed=grow.seed, n_rows=grow.n_rows)
        writer.put_arrays(n_children=grow.n_children, split_prior=grow.split_prior_of_depth, points=grow.points)
        write_statistics(writer, grow.point_statistics())


def read_growing(reader: Reader) -> GrowingPosterior:
    """Read the posterior, grown again from its distinct rows."""
    family = read_family(reader.section("family"))
    n_children = reader.array("n_children", np.int32, (None,))
    split_prior = reader.array("split_prior", np.float64, (1 + int((n_children > 1).sum()),))
    dtype = np.uint8 if n_children.max(initial=1) <= 255 else np.uint16
    points = reader.array("points", dtype, (None, len(n_children)))
    statistics = read_statistics(reader, family, len(points))
    n_rows = reader.value("n_rows", int)
    if not len(points) <= n_rows < 2**63:
        raise reader.error("n_rows", f"must be at least the {len(points)} distinct rows, but is {n_rows}")
    check_all(reader, "points", points, points < n_children, "codes must be below n_children")
    with reader.checking("seed"):
        grow = GrowingPosterior.of_points(
            n_children.tolist(), family, lambda depth: float(split_prior[depth]), reader.value("seed", int), points,
            statistics, n_rows,
        )  # fmt: skip
    if grow.n_points != len(points):
        raise reader.error("points", f"must be distinct, but only {grow.n_points} of {len(points)} are")
    return grow


def write_exact(writer: Writer, post: ExactPosterior) -> None:
    """Write arguments, rows and bounds."""
    write_family(writer.section("family"), post.family)
    plain, arrays = post.to_state()
    for name, value in plain.items():
        write_plain(writer.section("state"), name, value)
    if arrays:
        writer.put_arrays(codes=arrays["codes"])
        write_statistics(writer, arrays["statistics"])
    if "given" in arrays:
        writer.put_arrays(given=arrays["given"])


def read_exact(reader: Reader) -> ExactPosterior:
    """Read the posterior; regions are listed on first use."""
    family = read_family(reader.section("family"))
    state = reader.section("state")
    plain = {name: read_plain(state, name) for name in state.values()}
    arrays = {}
    if "bounds" in plain:
        arrays = {
            "codes": reader.array("codes", np.uint16, (None, None)),
            "statistics": read_statistics(reader, family, None),
        }
        if "given" in reader:
            arrays["given"] = reader.array("given", np.float64, (None,))
            check_all(reader, "given", arrays["given"], np.isfinite(arrays["given"]), "must be finite")
    with reader.checking("state"):
        return ExactPosterior.from_state(family, plain, arrays)
