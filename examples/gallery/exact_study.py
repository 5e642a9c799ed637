"""Bayesian decision trees, all of them: a small study.

With 120 patients and eight yes-or-no findings, which matter? `ExactPosterior` sums over every tree of depth three and
every choice of its splits, so the answer does not hang on a seed, a grower or one tree among many that are nearly as
good.
"""

import matplotlib.pyplot as plt
import numpy as np

import everytree as et

rng = np.random.default_rng(3)
X = rng.integers(0, 2, size=(120, 8)).astype(np.uint8)
ill = rng.random(120) < np.where(X[:, 2] & X[:, 5], 0.85, 0.25)

post = et.ExactPosterior([2] * 8, et.Bernoulli(0.5, 0.5), max_depth=3).fit(X, ill.astype(int))
leaf = et.ExactPosterior([2] * 8, et.Bernoulli(0.5, 0.5), max_depth=0).fit(X, ill.astype(int))
best = post.map_tree()
print(f"{sum(post.n_regions)} regions; log evidence {post.log_evidence:.2f}, of a single leaf {leaf.log_evidence:.2f}")
print(f"the best tree has {best.n_leaves} leaves and probability {np.exp(best.log_prob):.2f}")
print("after it:", [f"{np.exp(tree.log_prob):.2f}" for tree in post.top_trees(5)[1:]])

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
places = np.arange(8)
axes.bar(places - 0.2, post.root_feature_prob, width=0.4, label="asked first")
axes.bar(places + 0.2, post.feature_prob, width=0.4, label="asked at all")
axes.set(xlabel="finding", ylabel="posterior probability", title="Findings 2 and 5 make the difference")
axes.legend()
