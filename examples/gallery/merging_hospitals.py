"""Federated learning: three hospitals, one model, no rows exchanged.

Statistics add. Each hospital counts its own patients in the same structure and sends the counts; merged, they are the
posterior that all rows together would have given, to the last digits.
"""

import matplotlib.pyplot as plt
import numpy as np

import everytree as et

rng = np.random.default_rng(0)
tree = et.MetaTree.complete([0, 1, 2, 3, 1, 2, 3], n_children=2, n_features=4)


def patients(n):
    X = rng.integers(0, 2, size=(n, 4)).astype(np.uint8)
    return X, (rng.random(n) < np.where(X[:, 0] & X[:, 1], 0.8, 0.2)).astype(int)


def count(X, y):
    return et.Posterior(tree, et.Bernoulli(0.5, 0.5), split_prior=0.5).update(X, y)


rows = [patients(n) for n in (60, 150, 400)]
hospitals = [count(X, y) for X, y in rows]
together = count(*(np.concatenate(part) for part in zip(*rows, strict=True)))
merged = hospitals[0].copy().merge(hospitals[1]).merge(hospitals[2])

apart = abs(merged.split_prob - together.split_prob).max()
print(f"merged and pooled split probabilities differ by {apart:.1e}")

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
inner = np.flatnonzero(~tree.is_terminal)
for i, (post, n) in enumerate(zip([*hospitals, merged], (60, 150, 400, 610), strict=True)):
    name = "merged" if i == 3 else f"hospital {i + 1}"
    axes.plot(post.split_prob[inner], "o-", label=f"{name}, {n} patients")
axes.set(xlabel="node", ylabel="probability that it is split", title="What each knows, and all together")
axes.legend()
assert apart < 1e-10
