"""The native kernels. `tests/test_native_layout.py` compares this file with what the module says of itself.

Arrays are C-contiguous; those that a kernel writes to are kept by their owner in Python. `Any` is what is read through
the buffer protocol, whatever its type: the answer is False or None where it cannot be read as it is.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

class Writing:
    def __enter__(self) -> None: ...
    def __exit__(self, *args: object) -> None: ...

class Guard:
    def __init__(self) -> None: ...
    @property
    def writing(self) -> Writing: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *args: object) -> None: ...

class Tree:
    def __init__(
        self,
        *,
        feature: NDArray[np.int32],
        first_child: NDArray[np.int32],
        n_children: NDArray[np.int32],
        threshold: NDArray[np.int32],
        missing_child: NDArray[np.int32],
        n_features: int,
        exact_width: bool,
    ) -> None: ...
    @property
    def parent(self) -> NDArray[np.int32]: ...
    @property
    def depth(self) -> NDArray[np.int32]: ...
    def route(self, X: Any, n_jobs: int) -> NDArray[np.int32] | None: ...
    def upward_closure(self, ends: NDArray[np.int32]) -> NDArray[np.int32]: ...
    def sweep(
        self,
        nodes: NDArray[np.int32],
        *,
        log_split: NDArray[np.float64],
        log_stop: NDArray[np.float64],
        leaf: NDArray[np.float64],
        subtree: NDArray[np.float64],
        split_prob: NDArray[np.float64],
    ) -> None: ...
    def paths(
        self,
        ends: NDArray[np.int32],
        *,
        log_split: NDArray[np.float64],
        log_stop: NDArray[np.float64],
        leaf: NDArray[np.float64],
        subtree: NDArray[np.float64],
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]: ...

def top_trees(
    tree: Tree, log_split: NDArray[np.float64], log_stop: NDArray[np.float64], k: int
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int32]]: ...
def log_rising(x: NDArray[np.float64], n: NDArray[np.float64]) -> NDArray[np.float64]: ...
def log_beta_ratio(
    a: NDArray[np.float64], b: NDArray[np.float64], more_a: NDArray[np.float64], more_b: NDArray[np.float64]
) -> NDArray[np.float64]: ...
def log_negative_binomial(
    k: NDArray[np.float64], shape: NDArray[np.float64], odds: NDArray[np.float64]
) -> NDArray[np.float64]: ...
def log_beta_negative_binomial(
    k: NDArray[np.float64], r: NDArray[np.float64], a: NDArray[np.float64], b: NDArray[np.float64]
) -> NDArray[np.float64]: ...
def beta_negative_binomial_tail(
    k: NDArray[np.float64], r: NDArray[np.float64], a: NDArray[np.float64], b: NDArray[np.float64], is_above: bool
) -> NDArray[np.float64]: ...
def family_shape(name: str, size: int) -> tuple[int, int]: ...
def prepare_prior(name: str, size: int, hyper: NDArray[np.float64]) -> NDArray[np.float64]: ...
def posterior_parameters(
    name: str, size: int, statistics: NDArray[np.float64], prior: NDArray[np.float64]
) -> NDArray[np.float64]: ...
def log_evidence(
    name: str, size: int, statistics: NDArray[np.float64], prior: NDArray[np.float64]
) -> NDArray[np.float64]: ...
def linear_predictions(
    size: int, parameters: NDArray[np.float64], inputs: NDArray[np.float64]
) -> NDArray[np.float64]: ...
def sum_statistics(
    name: str, size: int, *, statistics: NDArray[np.float64], group: NDArray[np.int64], n_groups: int
) -> NDArray[np.float64]: ...
def take_away(
    name: str, size: int, *, statistics: NDArray[np.float64], others: NDArray[np.float64]
) -> tuple[NDArray[np.float64], bool]: ...
def row_statistics(
    name: str, size: int, *, y: Any, weight: Any, extra: Any, constant: float, n_rows: int
) -> NDArray[np.float64] | None: ...

class SharedPlan:
    def __init__(self, trees: Sequence[Tree]) -> None: ...

class Posterior:
    version: int
    @property
    def writing(self) -> Writing: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *args: object) -> None: ...
    def update(self, X: Any, y: Any, weight: Any, extra: Any, n_jobs: int) -> bool: ...
    def merge(self, statistics: NDArray[np.float64]) -> None: ...
    def lacking(self, statistics: NDArray[np.float64]) -> int: ...
    def take_away(self, statistics: NDArray[np.float64]) -> None: ...
    def sweep_all(self) -> None: ...
    def leave_one_out(self, X: Any, y: Any, weight: Any, extra: Any, n_jobs: int) -> NDArray[np.float64] | None: ...
    def update_shared(
        self, *, plan: SharedPlan, all: Sequence[Posterior], X: Any, y: Any, weight: Any, extra: Any, n_jobs: int
    ) -> tuple[int, int] | None: ...
    def update_forest(
        self, *, forest: Forest, all: Sequence[Posterior], X: Any, y: Any, weight: Any, extra: Any, n_jobs: int
    ) -> bool: ...

def make_posterior(
    *,
    name: str,
    size: int,
    tree: Tree,
    log_split: NDArray[np.float64],
    log_stop: NDArray[np.float64],
    leaf_prior: NDArray[np.float64],
    statistics: NDArray[np.float64],
    leaf: NDArray[np.float64],
    subtree: NDArray[np.float64],
    split_prob: NDArray[np.float64],
    n_rows: NDArray[np.int64],
    extra_constant: float,
) -> Posterior: ...

GROWING_NODE: np.dtype[np.void]
"""`GrowingNode` of core/growing.hpp."""

class Growing:
    def attach(
        self,
        *,
        nodes: NDArray[np.uint8],
        points: NDArray[np.unsignedinteger],
        log_odds: NDArray[np.float64],
        statistics: NDArray[np.float64],
        leaf: NDArray[np.float64],
        subtree: NDArray[np.float64],
        split_prob: NDArray[np.float64],
        counts: NDArray[np.int64],
    ) -> None: ...
    def check(self, X: Any, y: Any, weight: Any, extra: Any) -> bool: ...
    def insert(self, X: Any, y: Any, weight: Any, extra: Any, *, begin: int, n: int) -> int: ...
    def insert_points(self, points: NDArray[np.unsignedinteger], statistics: NDArray[np.float64]) -> None: ...
    def shares(self, X: Any) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]] | None: ...

def make_growing(
    *,
    name: str,
    size: int,
    wide: bool,
    leaf_prior: NDArray[np.float64],
    features: NDArray[np.int32],
    log_split: NDArray[np.float64],
    limit: NDArray[np.uint16],
    seed: int,
    extra_constant: float,
) -> Growing: ...
def feature_after(features: NDArray[np.int32], seed: int, answers: NDArray[np.int32]) -> int: ...

class Grower:
    def grow(
        self,
        *,
        sample: NDArray[np.int64],
        columns: NDArray[np.int32] | None = None,
        seed: int,
        random_splits: bool,
        max_features: int,
        min_samples_leaf: int,
        max_depth: int,
        max_leaf_nodes: int,
    ) -> tuple[
        NDArray[np.int32],
        NDArray[np.int32],
        NDArray[np.int32],
        NDArray[np.int32],
        NDArray[np.int32],
        NDArray[np.int32],
    ]: ...

def class_grower(
    *,
    codes: Any,
    n_codes: NDArray[np.int32],
    has_missing: NDArray[np.bool_],
    y: NDArray[np.int64],
    weight: NDArray[np.float64] | None,
    n_classes: int,
    criterion: str,
) -> Grower: ...
def number_grower(
    *,
    codes: Any,
    n_codes: NDArray[np.int32],
    has_missing: NDArray[np.bool_],
    y: NDArray[np.float64],
    weight: NDArray[np.float64] | None,
) -> Grower: ...
def evidence_grower(
    *,
    codes: Any,
    n_codes: NDArray[np.int32],
    has_missing: NDArray[np.bool_],
    statistics: NDArray[np.float64],
    name: str,
    size: int,
    prior: NDArray[np.float64],
) -> Grower: ...

class Booster:
    def run(
        self,
        *,
        role: NDArray[np.uint8],
        columns: NDArray[np.int32],
        seed: int,
        learning_rate: float,
        tau: float,
        split_prior: float,
        max_steps: int,
        patience: int,
        max_leaf_nodes: int,
        max_depth: int,
        min_samples_leaf: int,
        subsample: float,
        max_features: float,
        max_rows: int,
    ) -> dict[str, Any]: ...
    def stop(self) -> None: ...

def booster(
    *,
    codes: Any,
    n_codes: NDArray[np.int32],
    has_missing: NDArray[np.bool_],
    y: NDArray[np.float64],
    weight: NDArray[np.float64] | None,
    exposure: NDArray[np.float64] | None,
    n_classes: int,
    loss: str,
    points: NDArray[np.float64] | None = None,
) -> Booster: ...

class AdditiveTrees:
    def scores(self, X: Any, n_jobs: int) -> NDArray[np.float64] | None: ...
    def count(self, X: Any, weight: NDArray[np.float64] | None, n_jobs: int) -> NDArray[np.float64] | None: ...

def additive_trees(
    *,
    n_nodes: NDArray[np.int32],
    feature: NDArray[np.int32],
    first_child: NDArray[np.int32],
    threshold: NDArray[np.int32],
    missing_child: NDArray[np.int32],
    value: NDArray[np.float64],
    n_outputs: int,
    known: NDArray[np.uint16],
) -> AdditiveTrees: ...

class TreeSum:
    def explain(self, X: Any, n_jobs: int) -> NDArray[np.float64] | None: ...
    def base(self) -> NDArray[np.float64]: ...

def tree_sum(
    *,
    trees: Sequence[Any],
    mass: Sequence[NDArray[np.float64]],
    values: Sequence[NDArray[np.float64]],
    weights: NDArray[np.float64],
    first_output: NDArray[np.int32],
    player: NDArray[np.int32],
    known: NDArray[np.uint16],
    n_players: int,
    n_outputs: int,
) -> TreeSum: ...

class Forest:
    def __init__(self, trees: Sequence[Tree], known: NDArray[np.uint16]) -> None: ...
    def ends(self, X: Any, n_jobs: int) -> NDArray[np.int32] | None: ...
    def average(
        self,
        X: Any,
        *,
        values: Sequence[NDArray[np.float64]],
        weights: NDArray[np.float64],
        n_values: int,
        n_jobs: int,
    ) -> NDArray[np.float64] | None: ...
    def count(
        self,
        X: Any,
        y: Any,
        weight: Any,
        extra: Any,
        *,
        name: str,
        size: int,
        constant: float,
        statistics: Sequence[NDArray[np.float64]],
        n_rows: NDArray[np.int64],
        n_jobs: int,
    ) -> bool: ...
    def sum_up(self, *, name: str, size: int, statistics: Sequence[NDArray[np.float64]]) -> None: ...
    def add(
        self,
        *,
        name: str,
        size: int,
        statistics: Sequence[NDArray[np.float64]],
        n_rows: NDArray[np.int64],
        more: Sequence[NDArray[np.float64]],
        n_more: NDArray[np.int64],
    ) -> None: ...

def placed_statistics(
    name: str,
    size: int,
    *,
    tree: Tree,
    ends: NDArray[np.int32],
    y: Any,
    weight: Any,
    extra: Any,
    constant: float,
) -> NDArray[np.float64] | None: ...
def average_over_paths(
    tree: Tree,
    *,
    log_split: NDArray[np.float64],
    log_stop: NDArray[np.float64],
    leaf: NDArray[np.float64],
    subtree: NDArray[np.float64],
    values: NDArray[np.float64],
) -> NDArray[np.float64]: ...
def log_node_fates(
    tree: Tree,
    *,
    log_split: NDArray[np.float64],
    log_stop: NDArray[np.float64],
    leaf: NDArray[np.float64],
    subtree: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def survival_curves(
    *,
    size: int,
    per_cell: int,
    parameters: NDArray[np.float64],
    start: NDArray[np.int64],
    nodes: NDArray[np.int64],
    log_weights: NDArray[np.float64],
    log_hazard: NDArray[np.float64],
    n_jobs: int,
) -> NDArray[np.float64]: ...
def pooled_paths(
    *,
    ends: NDArray[np.int64],
    parent: NDArray[np.int32],
    log_reached: NDArray[np.float64],
    log_stop: NDArray[np.float64],
    log_tree_weights: NDArray[np.float64],
    log_negligible: float,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]: ...

class NodePool:
    def __init__(
        self,
        *,
        first: NDArray[np.int64],
        parent: NDArray[np.int32],
        log_reached: NDArray[np.float64],
        log_stop: NDArray[np.float64],
        log_tree_weights: NDArray[np.float64],
        log_negligible: float,
        n_jobs: int,
    ) -> None: ...
    def sums_along(self, *, values: NDArray[np.float64], n_jobs: int) -> NDArray[np.float64]: ...
    def averages(self, *, ends: NDArray[np.int32], sums: NDArray[np.float64], n_jobs: int) -> NDArray[np.float64]: ...

class HeldOutTree:
    def components(
        self, *, prior: NDArray[np.float64], log_split: NDArray[np.float64], log_stop: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]: ...

def make_held_out(
    *,
    name: str,
    size: int,
    tree: Tree,
    statistics: NDArray[np.float64],
    ends: NDArray[np.int32],
    counted: NDArray[np.uint8],
    y: Any,
    weight: Any,
    extra: Any,
    constant: float,
    scored: NDArray[np.uint8],
    group_start: NDArray[np.int64],
) -> HeldOutTree | None: ...
def predict_held_out(
    *,
    trees: Sequence[HeldOutTree],
    priors: NDArray[np.float64],
    log_split: Sequence[NDArray[np.float64]],
    log_stop: Sequence[NDArray[np.float64]],
    n_jobs: int,
) -> list[NDArray[np.float64]]: ...
def pool_held_out(
    *,
    pooled: NDArray[np.float64],
    trees: Sequence[HeldOutTree],
    rows: Sequence[NDArray[np.int64]],
    priors: NDArray[np.float64],
    log_split: Sequence[NDArray[np.float64]],
    log_stop: Sequence[NDArray[np.float64]],
    n_jobs: int,
) -> None: ...
def student_tails(
    *,
    start: NDArray[np.int64],
    weight: NDArray[np.float64],
    freedom: NDArray[np.float64],
    location: NDArray[np.float64],
    scale: NDArray[np.float64],
    y: NDArray[np.float64],
    n_jobs: int,
) -> NDArray[np.float64]: ...
def student_quantiles(
    *,
    start: NDArray[np.int64],
    weight: NDArray[np.float64],
    freedom: NDArray[np.float64],
    location: NDArray[np.float64],
    scale: NDArray[np.float64],
    p: NDArray[np.float64],
    n_jobs: int,
) -> NDArray[np.float64]: ...

class StudentForest:
    def __init__(
        self,
        pool: NodePool,
        *,
        freedom: NDArray[np.float64],
        location: NDArray[np.float64],
        location_rest: NDArray[np.float64],
        scale: NDArray[np.float64],
        n_jobs: int,
    ) -> None: ...
    def quantiles(
        self, *, ends: NDArray[np.int32], levels: NDArray[np.float64], n_jobs: int
    ) -> NDArray[np.float64]: ...
    def shortest(
        self, *, ends: NDArray[np.int32], coverage: float, is_log: bool, n_jobs: int
    ) -> NDArray[np.float64]: ...
    def log_densities(self, *, ends: NDArray[np.int32], y: NDArray[np.float64], n_jobs: int) -> NDArray[np.float64]: ...
    def tails(
        self, *, ends: NDArray[np.int32], y: NDArray[np.float64], is_above: bool, n_jobs: int
    ) -> NDArray[np.float64]: ...
    def scores(
        self, *, ends: NDArray[np.int32], y: NDArray[np.float64], is_log: bool, n_jobs: int
    ) -> NDArray[np.float64]: ...

class StudentMixtures:
    def __init__(
        self,
        *,
        start: NDArray[np.int64],
        weight: NDArray[np.float64],
        freedom: NDArray[np.float64],
        location: NDArray[np.float64],
        scale: NDArray[np.float64],
    ) -> None: ...
    def tails(
        self, unit: NDArray[np.int64], y: NDArray[np.float64], is_above: NDArray[np.bool_], n_jobs: int
    ) -> NDArray[np.float64]: ...
    def extra_distances(
        self, y: NDArray[np.float64], origin: NDArray[np.float64], n_jobs: int
    ) -> NDArray[np.float64]: ...

class Exact:
    def run(
        self,
        regions: int,
        expansions: Sequence[int] | None,
        seconds: float,
        progress: Callable[[int, int, int], object] | None,
    ) -> None: ...
    def list_continued(
        self, regions: int, progress: Callable[[int, int, int], object] | None
    ) -> dict[str, NDArray[Any]]: ...
    def sum_up(self, given: NDArray[np.float64], progress: Callable[[int, int, int], object] | None) -> None: ...
    def continued_mass(self) -> NDArray[np.float64]: ...
    def n_expanded(self) -> list[int]: ...
    def log_evidence(self) -> float: ...
    def log_upper(self) -> float: ...
    def n_regions(self) -> list[int]: ...
    def region(self, depth: int, number: int) -> dict[str, Any]: ...
    def summary(self) -> dict[str, Any]: ...
    def tree_sums(self) -> tuple[float, float]: ...
    def threshold(self, truncation: float, most: int, with_unknown: bool) -> float: ...
    def left_out(self, threshold: float, with_unknown: bool) -> float: ...
    def leaves(self, threshold: float, with_unknown: bool) -> dict[str, Any]: ...
    def feature_use(self, negligible: float) -> NDArray[np.float64]: ...

def make_exact(
    *,
    name: str,
    size: int,
    prior: NDArray[np.float64],
    codes: NDArray[np.uint16],
    n_codes: Sequence[int],
    kinds: Sequence[int],
    place: NDArray[np.int64],
    n_places: int,
    of_place: NDArray[np.float64],
    class_start: Sequence[int],
    log_split: Sequence[float],
    log_stop: Sequence[float],
    only_nontrivial: bool,
    negligible: float,
    temperature: float,
    is_continued: bool,
    n_jobs: int,
) -> Exact: ...

class Sampler:
    def horizon(self) -> int: ...
    def top_depth(self) -> int: ...
    def top_lack(self) -> str: ...
    def begin(self, from_worst: bool, n_jobs: int) -> None: ...
    def set_powers(self, powers: Sequence[float]) -> None: ...
    def sum_top(self, steps: float, bytes: float, depth: int, n_jobs: int) -> None: ...
    def run(
        self, *, n_draws: int, thin: int, n_single: int, n_blocks: int, n_jobs: int
    ) -> list[dict[str, NDArray[Any]]]: ...
    def counts(self) -> dict[str, NDArray[Any]]: ...
    def forget_counts(self) -> None: ...
    def best(self) -> list[dict[str, Any]]: ...
    def state(self) -> list[dict[str, Any]]: ...
    def restore(
        self,
        *,
        chain: int,
        random: int,
        n_draws: int,
        sizes: NDArray[np.int64],
        columns: NDArray[np.int32],
        codes: NDArray[np.int32],
    ) -> None: ...

def make_sampler(
    *,
    name: str,
    size: int,
    prior: NDArray[np.float64],
    codes: NDArray[np.uint16],
    n_codes: Sequence[int],
    kinds: Sequence[int],
    statistics: NDArray[np.float64],
    log_split: Sequence[float],
    log_stop: Sequence[float],
    summed_depth: int,
    only_nontrivial: bool,
    block_depth: int,
    max_block_cost: float,
    powers: Sequence[float],
    seeds: Sequence[int],
) -> Sampler: ...
def tabulate(
    *,
    weight: NDArray[np.float64],
    start: NDArray[np.int64],
    column: NDArray[np.int32],
    codes: NDArray[np.uint64],
    values: NDArray[np.float64],
    n_codes: Sequence[int],
    kinds: Sequence[int],
    with_unknown: bool,
    most: int,
    most_steps: float,
    n_jobs: int,
) -> (
    tuple[
        NDArray[np.int64],
        NDArray[np.int32],
        NDArray[np.int64],
        NDArray[np.int32],
        NDArray[np.int64],
        NDArray[np.float64],
    ]
    | None
): ...
def leaves_of_rows(
    *,
    weight: NDArray[np.float64],
    start: NDArray[np.int64],
    column: NDArray[np.int32],
    codes: NDArray[np.uint64],
    rows: NDArray[np.uint16],
    n_codes: Sequence[int],
    kinds: Sequence[int],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...

class Tables:
    def __init__(
        self,
        *,
        set_start: NDArray[np.int64],
        column: NDArray[np.int32],
        map_start: NDArray[np.int64],
        place: NDArray[np.int32],
        first_cell: NDArray[np.int64],
        cells: NDArray[np.float64],
        width: int,
        n_codes: NDArray[np.int32],
    ) -> None: ...
    def look_up(self, codes: NDArray[np.uint16], n_jobs: int) -> NDArray[np.float64]: ...

ONLINE_NODE: np.dtype[np.void]
"""`OnlineNode` of online/nodes.hpp."""

class Online:
    def attach(
        self,
        *,
        nodes: NDArray[np.uint8],
        boxes: NDArray[np.float64],
        some_missing: NDArray[np.uint8],
        statistics: NDArray[np.float64],
        ranges: NDArray[np.float64],
        kinds: NDArray[np.uint8],
        roots: NDArray[np.int32],
        counts: NDArray[np.int64],
    ) -> None: ...
    def use_prior(self, size: int, prior: NDArray[np.float64]) -> None: ...
    def write_evidence(self) -> None: ...
    def log_evidence(self) -> NDArray[np.float64]: ...
    def learn(self, rows: NDArray[np.float64], y: NDArray[np.float64], begin: int) -> int: ...
    def predict(self, rows: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def shares(
        self, rows: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.int32]]: ...
    def refresh(self) -> None: ...
    def class_lists(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]: ...
    def set_class_lists(
        self, start: NDArray[np.int64], number: NDArray[np.int32], weight: NDArray[np.float64]
    ) -> None: ...

MANY_CLASSES: int

def make_online(
    *,
    name: str,
    size: int,
    prior: NDArray[np.float64],
    seed: int,
    split_prior: float,
    half_life: float,
    max_nodes: int,
) -> Online: ...

LARGEST_FEATURE: float

def category_positions(texts: Sequence[str], seed: int, tree: int) -> NDArray[np.float64]: ...
def encode_dicts(
    rows: list[dict[Any, Any]],
    index: dict[Any, int],
    kinds: NDArray[np.uint8],
    simplify: Callable[[Any], Any],
) -> tuple[NDArray[np.float64], list[tuple[Hashable, bool]]]: ...
def scan_numbers(
    numbers: Any, known: NDArray[np.float64] | None, most: int
) -> tuple[NDArray[np.float64] | None, bool, int]: ...
def last_of_bins(mass: NDArray[np.float64], n_bins: int) -> NDArray[np.int64]: ...
def draw_rows(seed: int, first_row: int, n_rows: int, bound: int) -> tuple[NDArray[np.int64], NDArray[np.uint64]]: ...

class Encoder:
    def __init__(
        self,
        cuts: NDArray[np.float64],
        start: NDArray[np.int64],
        single: NDArray[np.uint8],
        groups: Sequence[NDArray[np.int32]] = ...,
    ) -> None: ...
    def encode(
        self, columns: list[Any], out: NDArray[np.uint8] | NDArray[np.uint16], n_jobs: int
    ) -> tuple[int, int] | None: ...
