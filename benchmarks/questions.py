"""What the posterior knows: class probabilities, leave-one-out, and questions about large trees.

`python benchmarks/questions.py --quick` is a smoke run; `--out benchmarks/RESULTS.md` keeps the answers. One thread,
everything in one process, answers compared before any clock starts.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.tree import DecisionTreeClassifier

import markdown
from everytree.structure.importers.sklearn_trees import metatree_from_sklearn_tree
from foundation import agree, binary_data, complete_tree, fresh
from markdown import number, section, table, times
from timing import medians, started


def probabilities(n_rows: int, repeats: int) -> str:
    """Class probabilities, averaged over every pruning, beside one plain tree of the same shape."""
    X, y = binary_data(n_rows, 20)
    noisy = np.random.default_rng(1).integers(0, 2, n_rows)  # makes the tree grow to its full depth
    cart = DecisionTreeClassifier(max_depth=10, random_state=0).fit(X[:200_000], noisy[:200_000])
    tree = metatree_from_sklearn_tree(cart.tree_, n_features=20)
    post = fresh(tree).update(X, y)
    as_floats = X.astype(np.float32)  # what scikit-learn reads without converting
    rows_go_the_same_way = np.bincount(tree.route(X[:1000]), minlength=tree.n_nodes)
    agree(
        np.sort(rows_go_the_same_way[rows_go_the_same_way > 0]),
        np.sort(np.unique(cart.apply(as_floats[:1000]), return_counts=True)[1]),
        "routing",
    )
    ms = medians(
        {
            "everytree": started(lambda: post, lambda p: p.predictive(X).probs()),
            "sklearn": started(lambda: cart, lambda c: c.predict_proba(as_floats)),
        },
        repeats,
    )
    cells = [f"{n_rows:,}", f"{tree.n_nodes:,}", times(ms["sklearn"], ms["everytree"]), *map(number, ms.values())]
    return section(
        "Class probabilities",
        f"`post.predictive(X).probs()` beside `predict_proba` of scikit-learn on the same tree; median of {repeats}.",
        table(["rows", "nodes", "sklearn / everytree", "everytree, ms", "sklearn, ms"], [cells]),
    )


def leave_one_out(n_rows: int, repeats: int) -> str:
    """Leave-one-out in closed form beside refitting, extrapolated from 20 refits."""
    tree, (X, y) = complete_tree(20, 10), binary_data(n_rows, 20)
    post = fresh(tree).update(X, y)

    def refit(i: int) -> float:
        others = np.arange(n_rows) != i
        return float(fresh(tree).update(X[others], y[others]).predictive(X[i : i + 1]).log_prob(y[i : i + 1])[0])

    agree(post.loo_log_prob(X[:20], y[:20]), [refit(i) for i in range(20)], "leave one out")
    ms = medians(
        {
            "closed form": started(lambda: post, lambda p: p.loo_log_prob(X, y)),
            "20 refits": started(lambda: None, lambda _: [refit(i) for i in range(20)]),
        },
        repeats,
    )
    all_refits = ms["20 refits"] / 20 * n_rows
    cells = [f"{n_rows:,}", times(all_refits, ms["closed form"]), number(ms["closed form"]), number(all_refits)]
    return section(
        "Leave-one-out",
        f"`loo_log_prob` of all rows beside a refit for each, extrapolated from 20; depth 10, median of {repeats}.",
        table(["rows", "refits / closed form", "closed form, ms", "refits, ms"], [cells]),
    )


def large_tree(depth: int, repeats: int) -> str:
    """Questions about a large meta-tree, in units of one full sweep of it."""
    tree = complete_tree(40, depth)
    post = fresh(tree).update(*binary_data(4 * tree.n_terminals, 40))
    other = post.copy()
    ms = medians(
        {
            "merge (one full sweep)": started(lambda: fresh(tree), lambda p: p.merge(other)),
            "map_tree": started(lambda: post, lambda p: p.map_tree()),
            "entropy": started(lambda: post, lambda p: p.entropy()),
            "top_trees(100)": started(lambda: post, lambda p: p.top_trees(100)),
        },
        repeats,
    )
    sweep = ms["merge (one full sweep)"]
    return section(
        "Questions about a large tree",
        f"A complete meta-tree of {tree.n_terminals:,} terminals with rows in most of them; median of {repeats}.",
        table(
            ["question", "to one sweep", "ms"], [[name, times(each, sweep), number(each)] for name, each in ms.items()]
        ),
    )


def main() -> None:
    """Print the tables as they come, and keep them if asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small problems and few repetitions")
    parser.add_argument("--out", type=Path, help="results file whose section 'questions' is replaced")
    options = parser.parse_args()
    quick = options.quick
    parts = ["## Questions" + (" (quick run, not for quoting)" if quick else "")]
    for run in (
        lambda: probabilities(10_000 if quick else 1_000_000, 3 if quick else 7),
        lambda: leave_one_out(2_000 if quick else 100_000, 3),
        lambda: large_tree(10 if quick else 20, 3),
    ):
        parts.append(run())
        print(parts[-1], end="\n\n", flush=True)
    if options.out:
        markdown.write_section(options.out, "questions", "\n\n".join(parts))


if __name__ == "__main__":
    main()
