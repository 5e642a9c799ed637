"""The model of an estimator in a file, by its kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from everytree.boosting.lines import LinedTrees
from everytree.boosting.trees import NODE_ARRAYS, AdditiveTrees
from everytree.families.base import NativeFamily
from everytree.families.registry import NUMBER_FAMILIES, boosted_families
from everytree.families.survival import Survival
from everytree.files.families import check_all
from everytree.files.others import read_exact, write_exact
from everytree.files.schemas import read_schema, write_schema
from everytree.files.sections import Reader, Writer
from everytree.files.trees import read_forest, write_forest
from everytree.models.average import AverageModel
from everytree.models.boosted import BoostedClasses, BoostedNumbers, Chains
from everytree.models.centres import Centres
from everytree.models.exact import ExactModel
from everytree.models.exact_curves import ExactCurves
from everytree.models.mixed import MixedClasses
from everytree.models.model import Model
from everytree.models.offsets import Offset, OffsetOfColumns, OffsetOfTrees
from everytree.models.survival import Member, SurvivalModel
from everytree.posterior.forest import Forest
from everytree.posterior.rows import Rows
from everytree.survival.baseline import Baseline
from everytree.survival.curves import Sharpening
from everytree.tables.schema import Schema


class Table(NamedTuple):
    """Description of the table, read before its model."""

    schema: Schema
    row_names: list[str]  # names of the row data that fit was given
    is_classes: bool


def write_model(writer: Writer, model: Model) -> None:
    """Write a model, and its kind."""
    writer.put(model_kind=model.kind)
    KINDS[model.kind][0](writer, model)


def read_model(reader: Reader, table: Table, kinds: tuple[str, ...]) -> Model:
    """Read a model, which must be of one of some kinds."""
    kind = reader.value("model_kind", str)
    if kind not in kinds:
        raise reader.error("model_kind", f"must be one of {list(kinds)}, but is {kind!r:.200}")
    return KINDS[kind][1](reader, table)


# ---- averages and exact sums ----------------------------------------------------------------------------------------


def _write_average(writer: Writer, model: AverageModel) -> None:
    write_forest(writer.section("forest"), model.forest)


def _read_average(reader: Reader, table: Table) -> AverageModel:
    forest = read_forest(reader.section("forest"))
    schema, family = table.schema, forest.family
    if not np.array_equal(forest.n_codes, schema.n_codes):
        raise reader.error("forest.n_codes", "are not those of the schema")
    if not isinstance(family, NativeFamily) or family.has_classes != table.is_classes:
        raise reader.error("forest", f"has leaves {family}, which this estimator never has")
    return AverageModel(forest)


def _write_exact(writer: Writer, model: ExactModel) -> None:
    write_exact(writer.section("posterior"), model.posterior)
    _write_rows(writer.section("rows"), model.rows)


def _read_exact(reader: Reader, table: Table) -> ExactModel:
    schema, posterior = table.schema, read_exact(reader.section("posterior"))
    if not hasattr(posterior, "n_rows"):
        raise reader.error("posterior", "has seen no rows, but the estimator is fitted")
    has_missing = schema.has_missing
    n_codes = schema.n_codes.astype(np.int64)
    if posterior.n_codes != (n_codes + has_missing).tolist():
        raise reader.error("posterior.state.n_codes", "are not those of the schema")
    rows = _read_rows(reader.section("rows"), table, posterior.family)
    model = ExactModel(posterior, has_missing, n_codes, rows)
    is_known = model.read(rows.codes) < np.array(posterior.n_codes)
    check_all(reader.section("rows"), "codes", rows.codes, is_known, "must be codes of the schema")
    return model


def _write_rows(writer: Writer, rows: Rows) -> None:
    weight = {} if rows.weight is None else {"weight": rows.weight}
    writer.put_arrays(codes=rows.codes, y=rows.y, **weight, **rows.row_data)


def _read_rows(reader: Reader, table: Table, family: NativeFamily) -> Rows:
    """Read rows that the leaf model accepts."""
    codes = reader.array("codes", table.schema.dtype, (None, table.schema.n_features))
    y = reader.array("y", np.int64 if table.is_classes else np.float64, (len(codes),))
    weight = reader.array("weight", np.float64, (len(codes),)) if "weight" in reader else None
    row_data = {
        name: reader.array(name, np.float64, (len(codes), None) if name == "inputs" else (len(codes),))
        for name in table.row_names
    }
    with reader.checking("y"):
        family.statistics(y, weight, **row_data)
    return Rows(codes, y, weight, row_data)


# ---- boosted models -------------------------------------------------------------------------------------------------


def _write_classes(writer: Writer, model: BoostedClasses) -> None:
    _write_classes_in(writer.section("boosted"), model)


def _write_classes_in(writer: Writer, model: BoostedClasses) -> None:
    _write_chains(writer, model.trees, model.chains)
    writer.put(sharpness=float(model.sharpness), n_rows=model.n_rows)


def _read_classes(reader: Reader, table: Table) -> BoostedClasses:
    reader = reader.section("boosted")
    trees, chains = _read_chains(reader, table.schema)
    if not table.is_classes:
        raise reader.error("trees", "are of classes, which this estimator never has")
    return BoostedClasses(trees, _positive(reader, "sharpness"), chains, _read_n_rows(reader))


def _write_mixed(writer: Writer, model: MixedClasses) -> None:
    writer = writer.section("boosted")
    writer.put(weight=float(model.weight), mixed_sharpness=float(model.sharpness))
    write_forest(writer.section("mixed"), model.forest)
    _write_classes_in(writer, model.boosted)


def _read_mixed(reader: Reader, table: Table) -> MixedClasses:
    boosted, reader = _read_classes(reader, table), reader.section("boosted")
    forest, weight = _read_mixed_forest(reader, table.schema), _positive(reader, "weight", 1.0)
    if forest.family.size != boosted.family.size or not forest.family.has_classes:
        raise reader.error("mixed", f"has leaves {forest.family}, but the trees have {boosted.family.size} classes")
    return MixedClasses(forest, boosted, weight, _positive(reader, "mixed_sharpness"))


def _write_numbers(writer: Writer, model: BoostedNumbers) -> None:
    writer, centres = writer.section("boosted"), model.centres
    if centres.forest is not None:
        writer.put(weight=float(centres.weight))
        write_forest(writer.section("mixed"), centres.forest)
    _write_chains(writer, centres.additive, model.chains)
    if centres.lined is not None:
        _write_lined(writer.section("lined"), centres.lined)
    writer.put(family=model.family.name)
    write_schema(writer.section("centre"), model.centre_codes)
    write_forest(writer.section("residuals"), model.residuals)


def _read_numbers(reader: Reader, table: Table) -> BoostedNumbers:
    reader, schema = reader.section("boosted"), table.schema
    trees, chains = _read_chains(reader, schema)
    family = reader.value("family", str)
    link = NUMBER_FAMILIES[family].link if family in boosted_families() else None
    if link is None or trees.n_outputs != 1:
        raise reader.error(
            "family", f"must be one of {list(boosted_families())} with one output, but is {family!r:.200}"
        )
    centre, residuals = read_schema(reader.section("centre")), read_forest(reader.section("residuals"))
    if centre.n_features != 1 or not np.array_equal(residuals.n_codes, [*schema.n_codes, *centre.n_codes]):
        raise reader.error("residuals", "must have the columns of the schema, and the centre")
    if not NUMBER_FAMILIES[family].makes(residuals.family):
        raise reader.error("residuals", f"has leaves {residuals.family}, but the family is {family!r}")
    lined = _read_lined(reader.section("lined"), schema) if "lined" in reader else None
    centres = Centres(trees, link, lined=lined)
    if "mixed" in reader:
        forest = _read_mixed_forest(reader, schema)
        if forest.family.has_classes:
            raise reader.error("mixed", f"has leaves {forest.family}, but targets are numbers")
        centres = Centres(trees, link, forest, _positive(reader, "weight", 1.0), lined)
    return BoostedNumbers(centres, link, centre, residuals, chains)


def _write_lined(writer: Writer, lined: LinedTrees) -> None:
    trees = lined.trees
    assert trees.mass is not None, "chains know the rows in their nodes"
    writer.put_arrays(
        n_nodes=trees.n_nodes, value=trees.value.ravel(), base=trees.base, mass=trees.mass, columns=lined.columns,
        points=np.concatenate(lined.points), **trees.nodes,
    )  # fmt: skip


def _read_lined(reader: Reader, schema: Schema) -> LinedTrees:
    trees, columns = _read_trees(reader, schema), reader.array("columns", np.int32, (None,))
    if not (np.diff(columns) > 0).all() or not ((columns >= 0) & (columns < schema.n_features)).all():
        raise reader.error("columns", f"must be ascending numbers of the {schema.n_features} columns")
    if trees.n_outputs != 1 + len(columns) or trees.n_values != trees.n_outputs or not len(trees):
        raise reader.error("value", f"must have a constant and {len(columns)} slopes a node, of one tree or more")
    n_codes = schema.n_codes[columns]
    points = reader.array("points", np.float64, (int(n_codes.sum()),))
    check_all(reader, "points", points, np.isfinite(points), "must be finite")
    return LinedTrees(trees, columns, np.split(points, np.cumsum(n_codes)[:-1]))


def _write_chains(writer: Writer, trees: AdditiveTrees, chains: Chains) -> None:
    writer.put_arrays(
        n_nodes=trees.n_nodes, value=trees.value.ravel(), base=trees.base, gains=chains.gains, **trees.nodes
    )
    if trees.mass is not None:
        writer.put_arrays(mass=trees.mass)
    writer.put(n_steps=[int(n) for n in chains.n_steps], split_prior=float(chains.split_prior))


def _read_chains(reader: Reader, schema: Schema) -> tuple[AdditiveTrees, Chains]:
    trees = _read_trees(reader, schema)
    gains = reader.array("gains", np.float64, (schema.n_features,))
    check_all(reader, "gains", gains, np.isfinite(gains) & (gains >= 0.0), "must be finite and not negative")
    n_steps = reader.value("n_steps", list)
    if not n_steps or not all(type(n) is int and n >= 0 for n in n_steps):
        raise reader.error("n_steps", f"must be whole numbers, but is {n_steps!r:.200}")
    return trees, Chains(gains, _positive(reader, "split_prior", 1.0), n_steps)


def _read_mixed_forest(reader: Reader, schema: Schema) -> Forest:
    forest = read_forest(reader.section("mixed"))
    if not np.array_equal(forest.n_codes, schema.n_codes):
        raise reader.error("mixed", "must have the columns of the schema")
    return forest


def _read_n_rows(reader: Reader) -> int:
    n_rows = reader.value("n_rows", int)
    if n_rows < 1:
        raise reader.error("n_rows", f"must be positive, but is {n_rows}")
    return n_rows


def _positive(reader: Reader, name: str, most: float = np.inf) -> float:
    value = reader.value(name, float)
    if not (np.isfinite(value) and 0.0 < value <= most):
        raise reader.error(
            name, f"must be positive{'' if most == np.inf else f' and at most {most:g}'}, but is {value}"
        )
    return value


def _read_trees(reader: Reader, schema: Schema) -> AdditiveTrees:
    n_nodes = reader.array("n_nodes", np.int32, (None,))
    n_all = int(n_nodes.astype(np.int64).sum())
    nodes: dict[str, Any] = {name: reader.array(name, np.int32, (n_all,)) for name in NODE_ARRAYS}
    base = reader.array("base", np.float64, (None,))
    value = reader.array("value", np.float64, (None,))
    if len(value) not in (n_all, n_all * len(base)):
        raise reader.error("value", f"must have one entry a node, or one for each of {len(base)} scores")
    value = value.reshape(n_all, -1) if n_all else value
    check_all(reader, "value", value, np.isfinite(value), "must be finite")
    check_all(reader, "base", base, np.isfinite(base), "must be finite")
    mass = None
    if "mass" in reader:  # files of earlier versions have none
        mass = reader.array("mass", np.float64, (n_all,))
        check_all(reader, "mass", mass, np.isfinite(mass) & (mass >= 0.0), "must be finite and not negative")
    with reader.checking("n_nodes"):
        return AdditiveTrees(n_nodes, nodes, value, base, schema.n_codes, mass)


# ---- survival curves ------------------------------------------------------------------------------------------------


def _write_exact_curves(writer: Writer, model: ExactCurves) -> None:
    _write_baseline(writer, model.baseline)
    _write_exact(writer, model.exact)


def _read_exact_curves(reader: Reader, table: Table) -> ExactCurves:
    baseline, exact = _read_baseline(reader), _read_exact(reader, table)
    _check_on_baseline(reader, "posterior", exact.family, baseline)
    return ExactCurves(exact, baseline)


def _write_baseline(writer: Writer, baseline: Baseline) -> None:
    writer.put_arrays(times=baseline.times, positions=baseline.positions, lengths=baseline.lengths)


def _read_baseline(reader: Reader) -> Baseline:
    times = reader.array("times", np.float64, (None,))
    positions = reader.array("positions", np.float64, (len(times),))
    lengths = reader.array("lengths", np.float64, (None,))
    if len(times) == 0 or not (np.diff(times, prepend=0.0) > 0.0).all() or not np.isfinite(times).all():
        raise reader.error("times", "must be positive, finite and ascending")
    if not (np.diff(positions, prepend=0.0) >= 0.0).all() or positions[-1] != len(lengths):
        raise reader.error("positions", f"must not fall, and end at {len(lengths)}")
    check_all(reader, "lengths", lengths, np.isfinite(lengths) & (lengths > 0.0), "must be positive and finite")
    return Baseline(times, positions, lengths)


def _check_on_baseline(reader: Reader, name: str, family: Any, baseline: Baseline) -> None:
    if not isinstance(family, Survival) or not np.array_equal(family.lengths, baseline.lengths):
        raise reader.error(name, f"has leaves {family}, but the baseline has {len(baseline.lengths)} other cells")


def _write_survival(writer: Writer, model: SurvivalModel) -> None:
    writer = writer.section("survival")
    writer.put(n_members=len(model.members), power=float(model.sharpening.power))
    writer.put_arrays(centre=model.sharpening.centre)
    for number, member in enumerate(model.members):
        own = writer.section(f"member{number}")
        _write_baseline(own, member.baseline)
        if member.offset is not None:
            _write_offset(own, member.offset)
        write_forest(own.section("forest"), member.forest)


def _read_survival(reader: Reader, table: Table) -> SurvivalModel:
    reader = reader.section("survival")
    n_members = reader.value("n_members", int)
    if not 1 <= n_members <= MAX_MEMBERS:
        raise reader.error("n_members", f"must be from 1 to {MAX_MEMBERS}, but is {n_members}")
    members = [_read_member(reader.section(f"member{number}"), table) for number in range(n_members)]
    times = members[0].baseline.times
    centre = reader.array("centre", np.float64, (len(times),))
    check_all(reader, "centre", centre, np.isfinite(centre), "must be finite")
    for number, member in enumerate(members):
        if not np.array_equal(member.baseline.times, times):
            raise reader.error(f"member{number}", "has other times than the first")
    return SurvivalModel(members, Sharpening(_positive(reader, "power"), centre))


def _read_member(reader: Reader, table: Table) -> Member:
    baseline = _read_baseline(reader)
    offset = _read_offset(reader, table.schema)
    forest = read_forest(reader.section("forest"))
    if not np.array_equal(forest.n_codes, table.schema.n_codes):
        raise reader.error("forest.n_codes", "are not those of the schema")
    _check_on_baseline(reader, "forest", forest.family, baseline)
    return Member(baseline, offset, forest)


def _write_offset(writer: Writer, offset: Any) -> None:
    if offset.chains is not None:
        _write_chains(writer.section("boosted"), offset.trees, offset.chains)
        return
    writer.put_arrays(first=offset.first, values=offset.values)
    writer.put(centre=float(offset.centre))


def _read_offset(reader: Reader, schema: Schema) -> Offset | None:
    if "boosted" in reader:
        return OffsetOfTrees(*_read_chains(reader.section("boosted"), schema))
    if "first" not in reader:
        return None
    first = reader.array("first", np.int64, (schema.n_features + 1,))
    if not np.array_equal(np.diff(first, prepend=0), np.append(0, schema.n_codes.astype(np.int64) + 1)):
        raise reader.error("first", "does not fit the codes of the schema")
    values = reader.array("values", np.float64, (int(first[-1]),))
    check_all(reader, "values", values, np.isfinite(values), "must be finite")
    centre = reader.value("centre", float)
    if not np.isfinite(centre):
        raise reader.error("centre", f"must be finite, but is {centre}")
    return OffsetOfColumns(first, values, centre)


MAX_MEMBERS = 16

KINDS: dict[str, tuple[Callable[[Writer, Any], None], Callable[[Reader, Table], Model]]] = {
    AverageModel.kind: (_write_average, _read_average),
    ExactModel.kind: (_write_exact, _read_exact),
    BoostedClasses.kind: (_write_classes, _read_classes),
    BoostedNumbers.kind: (_write_numbers, _read_numbers),
    MixedClasses.kind: (_write_mixed, _read_mixed),
    ExactCurves.kind: (_write_exact_curves, _read_exact_curves),
    SurvivalModel.kind: (_write_survival, _read_survival),
}
"""Writer and reader of each kind of model."""
