"""The slow, obvious twin of everytree: the paper's results written down literally, with brute force beside.

Arguments common to nearly every function:

tree : anything with the arrays of `Tree`
split_prior : one g_s per node, of any number type; terminals count as 0 whatever is written there
family_of_node : callable, node -> `naive_families.Family`
X : (n_rows, n_features) integer codes;  y : (n_rows,);  weights : (n_rows,) or None
data : the family's row data by name (`exposure`, `censored`, `inputs`), one entry a row
x_new, y_new, row_data_new : one new row; keep the dtype of X in x_new, it tells the missing code
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import numpy as np

from naive_families import Family, Real, exact, exact_all, mp

Nodes = frozenset[int]
ByNode = Callable[[int], Any]
Path = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Tree:
    """T_max with k, in level order; every function takes anything that has these arrays, one entry a node."""

    feature: Sequence[int]
    first_child: Sequence[int]
    n_children: Sequence[int]
    threshold: Sequence[int]
    missing_child: Sequence[int]


# The tree and the way through it


def children(tree: Tree, s: int) -> list[int]:
    """Ch(s) of Theorem 1."""
    return [int(tree.first_child[s]) + offset for offset in range(int(tree.n_children[s]))]


def is_terminal(tree: Tree, s: int) -> bool:
    """Whether s is in L(T_max)."""
    return int(tree.n_children[s]) == 0


def missing_code_of(row: Any) -> int:
    """The missing code, as the dtype of a row tells it."""
    dtype = np.asarray(row).dtype
    return int(np.iinfo(dtype).max) if dtype.kind == "u" else -1


def next_node(tree: Tree, s: int, code: int, missing_code: int) -> int | None:
    """Where a code leads from an inner node; None where it leads to no child."""
    if code == missing_code and tree.missing_child[s] >= 0:
        offset = int(tree.missing_child[s])
    elif tree.threshold[s] >= 0:
        offset = 0 if code <= tree.threshold[s] else 1
    else:
        offset = code
    return children(tree, s)[offset] if 0 <= offset < tree.n_children[s] else None


def path(tree: Tree, row: Sequence[int], missing_code: int | None = None) -> list[int]:
    """Nodes from the root to s_{T_max, k}(x); the missing code is told by the row's dtype unless given."""
    missing_code = missing_code_of(row) if missing_code is None else missing_code
    nodes = [0]
    while not is_terminal(tree, nodes[-1]):
        s = nodes[-1]
        code = int(row[tree.feature[s]])
        following = next_node(tree, s, code, missing_code)
        if following is None:
            raise ValueError(f"node {s}, feature {tree.feature[s]}: code {code} leads to no child")
        nodes.append(following)
    return nodes


def rows_through(tree: Tree, X: Any) -> list[list[int]]:
    """For each node the numbers of the rows in x_s (the definition above Theorem 1)."""
    paths = [path(tree, row) for row in X]
    return [[i for i, nodes in enumerate(paths) if s in nodes] for s in range(len(tree.feature))]


def take(rows: list[int], y: Any, weights: Any, data: dict[str, Any]) -> dict[str, Any]:
    """The columns of some rows, as the keyword arguments of a family's methods."""
    columns = {"ys": y, "weights": weights, **data}
    return {name: None if column is None else [column[i] for i in rows] for name, column in columns.items()}


def floats(values: Sequence[Real]) -> np.ndarray:
    """60-digit numbers, rounded."""
    return np.array([float(value) for value in values])


# Every pruned tree


def pruned_trees_below(tree: Tree, root: int) -> Iterator[tuple[Nodes, Nodes]]:
    """Every pruned tree of the subtree rooted at a node, as (inner nodes, leaves)."""
    yield frozenset(), frozenset([root])
    if is_terminal(tree, root):
        return
    for parts in product(*(list(pruned_trees_below(tree, child)) for child in children(tree, root))):
        inner, leaves = zip(*parts, strict=True)
        yield frozenset([root]).union(*inner), frozenset().union(*leaves)


def all_pruned_trees(tree: Tree) -> Iterator[tuple[Nodes, Nodes]]:
    """The meta-tree M_{T_max, k}: every (I(T), L(T))."""
    return pruned_trees_below(tree, 0)


def prior_at(tree: Tree, split_prior: Any, s: int) -> Any:
    """g_s, which is 0 at every terminal."""
    return 0 if is_terminal(tree, s) else split_prior[s]


def tree_prior(tree: Tree, split_prior: Any, inner: Nodes, leaves: Nodes) -> Any:
    """p(T), equation (2), in the number type of split_prior."""
    return prod(split_prior[s] for s in inner) * prod(1 - prior_at(tree, split_prior, s) for s in leaves)


def leaf_log_evidence(
    tree: Tree, family_of_node: ByNode, X: Any, y: Any, weights: Any = None, **data: Any
) -> list[Real]:
    """Log of the integral of p(y_s | x_s, theta_s) p(theta_s) for each node."""
    rows = rows_through(tree, X)
    return [family_of_node(s).exact_log_evidence(**take(rows[s], y, weights, data)) for s in range(len(rows))]


def leaf_evidence(tree: Tree, family_of_node: ByNode, X: Any, y: Any, weights: Any, data: Any) -> list[Real]:
    """The same without the log, at 60 digits and with no underflow."""
    return [mp.exp(value) for value in leaf_log_evidence(tree, family_of_node, X, y, weights, **data)]


def leaf_evidence_fraction(tree: Tree, family_of_node: ByNode, X: Any, y: Any, weights: Any) -> list[Fraction]:
    """The same as exact rationals."""
    rows = rows_through(tree, X)
    return [family_of_node(s).evidence_fraction(**take(rows[s], y, weights, {})) for s in range(len(rows))]


# Brute force: sums over every pruned tree, in any number type


def joint(tree: Tree, split_prior: Any, evidence: Sequence[Any], root: int = 0) -> Iterator[tuple[Nodes, Nodes, Any]]:
    """(I(T), L(T), p(T) p(y | x, T)) for each tree at a root: (tree_prior) times (marginal_likelihood)."""
    for inner, leaves in pruned_trees_below(tree, root):
        yield inner, leaves, tree_prior(tree, split_prior, inner, leaves) * prod(evidence[s] for s in leaves)


def sum_of_joint(tree: Tree, split_prior: Any, evidence: Sequence[Any]) -> Any:
    """p(y^n | x^n): the likelihood marginalised over the meta-tree."""
    return sum(weight for _, _, weight in joint(tree, split_prior, evidence))


def conditional_split_prob(tree: Tree, split_prior: Any, evidence: Sequence[Any], s: int) -> Any:
    """P(s in I(T) | s in T, data): given that s is in T, only the subtrees rooted at s matter."""
    below = list(joint(tree, split_prior, evidence, s))
    return sum(weight for inner, _, weight in below if s in inner) / sum(weight for _, _, weight in below)


def brute_log_evidence(
    tree: Tree, split_prior: Any, family_of_node: ByNode, X: Any, y: Any, weights: Any = None, **data: Any
) -> float:
    """log p(y^n | x^n), by enumeration."""
    evidence = leaf_evidence(tree, family_of_node, X, y, weights, data)
    return float(mp.log(sum_of_joint(tree, exact_all(split_prior), evidence)))


def brute_tree_posterior(
    tree: Tree, split_prior: Any, family_of_node: ByNode, X: Any, y: Any, weights: Any = None, **data: Any
) -> dict[Nodes, float]:
    """p(T | x^n, y^n) of every pruned tree, by Bayes' theorem; the trees are named by their leaves."""
    evidence = leaf_evidence(tree, family_of_node, X, y, weights, data)
    weight_of = {leaves: weight for _, leaves, weight in joint(tree, exact_all(split_prior), evidence)}
    return {leaves: float(weight / sum(weight_of.values())) for leaves, weight in weight_of.items()}


def brute_split_prob(
    tree: Tree, split_prior: Any, family_of_node: ByNode, X: Any, y: Any, weights: Any = None, **data: Any
) -> np.ndarray:
    """g_{s | x^n, y^n} of every node, by enumeration of the subtrees below it."""
    evidence = leaf_evidence(tree, family_of_node, X, y, weights, data)
    prior = exact_all(split_prior)
    return floats([conditional_split_prob(tree, prior, evidence, s) for s in range(len(evidence))])


def leaf_posterior(
    tree: Tree, split_prior: Any, family_of_node: ByNode, X: Any, y: Any, x_new: Any, weights: Any, data: Any
) -> list[tuple[Real, Any, dict[str, Any]]]:
    """For each node that may be s_{T, k}(x_new): (its probability given the data, its family, its rows)."""
    evidence = leaf_evidence(tree, family_of_node, X, y, weights, data)
    nodes, rows = path(tree, x_new), rows_through(tree, X)
    prob = dict.fromkeys(nodes, mp.mpf(0))
    for _, leaves, weight in joint(tree, exact_all(split_prior), evidence):
        prob[next(s for s in nodes if s in leaves)] += weight
    total = mp.fsum(prob.values())
    return [(p / total, family_of_node(s), take(rows[s], y, weights, data)) for s, p in prob.items() if p > 0]


def brute_log_predictive(
    tree: Tree,
    split_prior: Any,
    family_of_node: ByNode,
    X: Any,
    y: Any,
    x_new: Any,
    y_new: Any,
    weights: Any = None,
    row_data_new: dict[str, Any] | None = None,
    **data: Any,
) -> float:
    """log p(y_new | x_new, data): the leaves' predictives averaged over p(T | data)."""
    leaves = leaf_posterior(tree, split_prior, family_of_node, X, y, x_new, weights, data)
    log_terms = (
        mp.log(p) + family.exact_log_predictive(y_new, row_data_new=row_data_new, **rows) for p, family, rows in leaves
    )
    return float(mp.log(mp.fsum(map(mp.exp, log_terms))))


def brute_moments(
    tree: Tree,
    split_prior: Any,
    family_of_node: ByNode,
    X: Any,
    y: Any,
    x_new: Any,
    weights: Any = None,
    row_data_new: dict[str, Any] | None = None,
    **data: Any,
) -> tuple[float, float]:
    """Mean and variance of p(y_new | x_new, data), by the laws of total mean and variance over trees."""
    leaves = leaf_posterior(tree, split_prior, family_of_node, X, y, x_new, weights, data)
    moments = [(p, *family.exact_moments(row_data_new=row_data_new, **rows)) for p, family, rows in leaves]
    mean = mp.fsum(p * m for p, m, _ in moments)
    if mean == mp.inf:
        return float("inf"), float("inf")
    return float(mean), float(mp.fsum(p * (v + (m - mean) ** 2) for p, m, v in moments))


def brute_mean(*args: Any, **kwargs: Any) -> float:
    """Mean of `brute_moments`, with its arguments."""
    return brute_moments(*args, **kwargs)[0]


def brute_variance(*args: Any, **kwargs: Any) -> float:
    """Variance of `brute_moments`, with its arguments."""
    return brute_moments(*args, **kwargs)[1]


def brute_probs(
    tree: Tree, split_prior: Any, family_of_node: ByNode, X: Any, y: Any, x_new: Any, weights: Any = None
) -> np.ndarray:
    """P(y_new = c | x_new, data) of each class, averaged over p(T | data)."""
    leaves = leaf_posterior(tree, split_prior, family_of_node, X, y, x_new, weights, {})
    weighted = [[p * prob for prob in family.exact_probs(**rows)] for p, family, rows in leaves]
    return floats([mp.fsum(of_class) for of_class in zip(*weighted, strict=True)])


def brute_evidence_fraction(
    tree: Tree, split_prior: Any, family_of_node: ByNode, X: Any, y: Any, weights: Any = None
) -> Fraction:
    """p(y^n | x^n) as an exact rational."""
    evidence = leaf_evidence_fraction(tree, family_of_node, X, y, weights)
    return sum_of_joint(tree, [Fraction(g) for g in split_prior], evidence)


def brute_split_prob_fraction(
    tree: Tree, split_prior: Any, family_of_node: ByNode, X: Any, y: Any, weights: Any = None
) -> list[Fraction]:
    """g_{s | x^n, y^n} of every node as exact rationals."""
    evidence = leaf_evidence_fraction(tree, family_of_node, X, y, weights)
    prior = [Fraction(g) for g in split_prior]
    return [conditional_split_prob(tree, prior, evidence, s) for s in range(len(evidence))]


def brute_predictive_fraction(
    tree: Tree,
    split_prior: Any,
    family_of_node: ByNode,
    X: Any,
    y: Any,
    x_new: Any,
    y_new: Any,
    weights: Any = None,
) -> Fraction:
    """p(y_new | x_new, data) as an exact rational: the evidence with the row over the evidence without it."""
    weights = [1] * len(y) if weights is None else weights
    after = brute_evidence_fraction(tree, split_prior, family_of_node, [*X, x_new], [*y, y_new], [*weights, 1])
    return after / brute_evidence_fraction(tree, split_prior, family_of_node, X, y, weights)


# The paper's results, in log space at 60 digits


def log_add(left: Real, right: Real) -> Real:
    """log(exp(left) + exp(right)); 60-digit numbers do not underflow, so this is safe as it stands."""
    return mp.log(mp.exp(left) + mp.exp(right))


def log_prior(tree: Tree, split_prior: Any, s: int) -> tuple[Real, Real]:
    """log(g_s) and log(1 - g_s)."""
    g = exact(prior_at(tree, split_prior, s))
    return mp.log(g), mp.log(1 - g)


def proposition_1(
    tree: Tree, split_prior: Any, family_of_node: ByNode, X: Any, y: Any, weights: Any = None, **data: Any
) -> tuple[np.ndarray, float]:
    """Proposition 1, row by row: (g_{s | x^n, y^n}, sum over i of log q(y_i | x_i, root)).

    log(1 - g) is carried beside log(g): it is the same update, and exact when g has come close to 1.
    """
    weights = [1] * len(y) if weights is None else weights
    rows, log_evidence = rows_through(tree, X), mp.mpf(0)
    priors = [log_prior(tree, split_prior, s) for s in range(len(rows))]
    log_g, log_not_g = [split for split, _ in priors], [stop for _, stop in priors]
    for i, x in enumerate(X):
        new = {name: column[i] for name, column in data.items()}
        log_q_child = -mp.inf  # below the terminal there is nothing, and its g is 0
        for s in reversed(path(tree, x)):
            earlier = take([j for j in rows[s] if j < i], y, weights, data)
            family = family_of_node(s)
            leaf = family.exact_log_predictive(y[i], row_data_new=new, weight_new=weights[i], **earlier)
            log_q = log_add(log_not_g[s] + leaf, log_g[s] + log_q_child)
            log_g[s], log_not_g[s] = log_g[s] + log_q_child - log_q, log_not_g[s] + leaf - log_q
            log_q_child = log_q
        log_evidence += log_q
    return floats([mp.exp(value) for value in log_g]), float(log_evidence)


def theorem_1(
    tree: Tree, split_prior: Any, family_of_node: ByNode, X: Any, y: Any, weights: Any = None, **data: Any
) -> tuple[np.ndarray, np.ndarray, float]:
    """Theorem 1 at every node: (g_{s | x^n, y^n}, log q(y_s | x_s, s), log q at the root)."""
    leaf = leaf_log_evidence(tree, family_of_node, X, y, weights, **data)
    log_q, g = list(leaf), [mp.mpf(0)] * len(leaf)
    for s in reversed(range(len(leaf))):  # level order: children come after their parent
        if not is_terminal(tree, s):
            log_g, log_not_g = log_prior(tree, split_prior, s)
            split = log_g + mp.fsum(log_q[child] for child in children(tree, s))
            log_q[s] = log_add(log_not_g + leaf[s], split)
            g[s] = mp.exp(split - log_q[s])
    return floats(g), floats(log_q), float(log_q[0])


def stopping_recursion(
    tree: Tree, split_prior: Any, stops: Callable[[int], bool], log_leaf: Callable[[int], Real]
) -> tuple[dict[int, float], dict[int, float], float]:
    """What both corollaries share: a node that `stops` keeps its g_s and has its leaf's evidence."""
    g: dict[int, float] = {}
    log_q: dict[int, float] = {}

    def visit(s: int) -> Real:
        """Record g and log q of a node, after those of its children, and return log q."""
        prior, value = exact(prior_at(tree, split_prior, s)), log_leaf(s)
        g[s], log_q[s] = float(prior), float(value)
        if not stops(s) and not is_terminal(tree, s):
            split = mp.log(prior) + mp.fsum(visit(child) for child in children(tree, s))
            value = log_add(mp.log(1 - prior) + value, split)
            g[s], log_q[s] = float(mp.exp(split - value)), float(value)
        return value

    return g, log_q, float(visit(0))


def corollary_1(
    tree: Tree, split_prior: Any, family_of_node: ByNode, X: Any, y: Any, weights: Any = None, **data: Any
) -> tuple[np.ndarray, np.ndarray, float]:
    """Corollary 1: the recursion stops where x_s is empty; below that g is the prior and log q is 0."""
    rows = rows_through(tree, X)
    g, log_q, log_evidence = stopping_recursion(
        tree,
        split_prior,
        lambda s: not rows[s],
        lambda s: family_of_node(s).exact_log_evidence(**take(rows[s], y, weights, data)),
    )
    g_of_all = [g.get(s, float(prior_at(tree, split_prior, s))) for s in range(len(rows))]
    return np.array(g_of_all), np.array([log_q.get(s, 0.0) for s in range(len(rows))]), log_evidence


def corollary_2(
    tree: Tree, split_prior: Any, family: Family, X: Any, y: Any, weights: Any = None, **data: Any
) -> tuple[dict[int, float], dict[int, float], float]:
    """Corollary 2: one p(theta) for all nodes; stops where x_s is at one point or empty, equation (17).

    The dictionaries hold g and log q of the nodes that the recursion visited.
    """
    rows = rows_through(tree, X)
    return stopping_recursion(
        tree,
        split_prior,
        lambda s: len({tuple(map(int, X[i])) for i in rows[s]}) <= 1,
        lambda s: family.exact_log_evidence(**take(rows[s], y, weights, data)),
    )


# No depth limit


def growing_tree(
    n_children: Sequence[int],
    choose_feature: Callable[[Path], int],
    split_prior_of_depth: Callable[[int], Any],
) -> tuple[Tree, list[Any]]:
    """The whole virtual tree of a growing posterior and its g_s; terminal where nothing is left to ask."""
    paths: list[Path] = [()]
    feature, first_child, arity, prior = [], [], [], []
    for asked in paths:  # the list grows while it is read: level order
        left = {k for k, m in enumerate(n_children) if m > 1} - {k for k, _ in asked}
        k = choose_feature(asked) if left else -1
        if left and k not in left:
            raise ValueError(f"choose_feature({asked}) is {k}, but the features left are {sorted(left)}")
        feature.append(k)
        first_child.append(len(paths) if left else -1)
        arity.append(n_children[k] if left else 0)
        prior.append(split_prior_of_depth(len(asked)) if left else 0)
        paths.extend((*asked, (k, answer)) for answer in range(arity[-1]))
    return Tree(feature, first_child, arity, [-1] * len(paths), [-1] * len(paths)), prior


def growing_log_evidence(
    n_children: Sequence[int],
    choose_feature: Callable[[Path], int],
    split_prior_of_depth: Callable[[int], Any],
    family: Family,
    X: Any,
    y: Any,
    weights: Any = None,
    **data: Any,
) -> float:
    """Log evidence of the growing model by Theorem 1 on the fully expanded tree: nothing is concentrated."""
    tree, prior = growing_tree(n_children, choose_feature, split_prior_of_depth)
    return theorem_1(tree, prior, lambda s: family, X, y, weights, **data)[-1]


def growing_log_predictive(
    n_children: Sequence[int],
    choose_feature: Callable[[Path], int],
    split_prior_of_depth: Callable[[int], Any],
    family: Family,
    X: Any,
    y: Any,
    x_new: Any,
    y_new: Any,
    weights: Any = None,
    row_data_new: dict[str, Any] | None = None,
    **data: Any,
) -> float:
    """log p(y_new | x_new, data) of the growing model: the evidence with the new row over that without it."""
    model = (n_children, choose_feature, split_prior_of_depth, family)
    longer = family.with_row(y_new, y, weights, row_data_new, **data)
    after = growing_log_evidence(*model, [*X, x_new], longer.pop("ys"), **longer)
    return after - growing_log_evidence(*model, X, y, weights, **data)


# Tables and codes


def naive_codes(columns: Sequence[Any], rows: Sequence[Sequence[Any]], missing: int) -> list[list[int]]:
    """Codes of a table cell by cell: the cuts below a number, or the place of a category; or the group of that.

    columns : anything with `kind`, `cuts`, `categories`, `single` and `groups`; each reads its own place of a row
    rows : numbers, text and None, dates as microseconds already;  missing : the missing code, unseen is one below
    """
    says_missing = ["", "NA", "N/A", "n/a", "<NA>", "#N/A", "NaN", "nan", "-nan", "NULL", "null", "None"]

    def code(column: Any, value: Any) -> int:
        if value is None or value != value or (isinstance(value, str) and value in says_missing):
            return missing
        if column.kind == "categorical":
            known = list(column.categories)
            if value not in known:
                return missing if column.groups else missing - 1
            place = known.index(value)
        else:
            with np.errstate(over="ignore"):  # beyond float32 is beyond all cuts
                x = float(np.float32(value)) if column.single else float(value)
            place = sum(1 for cut in column.cuts if cut < x)
        if not column.groups:
            return place
        return missing if column.groups[place] < 0 else int(column.groups[place])

    return [[code(column, value) for column, value in zip(columns, row, strict=True)] for row in rows]
