"""Change point detection: every segmentation of a series, summed exactly.

When did the level of the series change, and how sure is that? Over one ordered column, time, a tree is a segmentation,
and `ExactPosterior` sums over all of them. Trees drawn from their posterior say at each step how probable a change is:
a clear jump is one spike, a doubtful one is spread over its neighbours, and elsewhere there is next to nothing.
"""

import matplotlib.pyplot as plt
import numpy as np

import everytree as et

rng = np.random.default_rng(1)
level = np.repeat([0.0, 2.0, 1.3, -0.5], [60, 45, 55, 40])
series = level + rng.normal(scale=0.8, size=len(level))
time = np.arange(len(series), dtype=np.uint8)[:, None]

leaf = et.Normal(mean=0.0, strength=0.1, shape=2.0, scale=1.0)
post = et.ExactPosterior([len(series)], leaf, split_prior=0.5, max_depth=4).fit(time, series)
draws = post.sample_trees(4000, rng=0)
change = np.zeros(len(series))
for tree in draws:
    change[np.unique(tree.code[tree.feature >= 0]) + 1] += 1.0 / len(draws)
for name, begin in (("jump by 2.0", 60), ("step by -0.7", 105), ("jump by -1.8", 160)):
    near = change[begin - 3 : begin + 4].sum()
    print(f"{name} at {begin}: P(change there) {change[begin]:.2f}, changes expected within three steps {near:.2f}")
n_segments = np.array([tree.n_leaves for tree in draws])
print("segments:", {k: f"{np.mean(n_segments == k):.2f}" for k in range(3, 7)})

mean, _ = post.moments(time)
figure, (above, below) = plt.subplots(2, 1, figsize=(7, 5), sharex=True, layout="constrained", height_ratios=[2, 1])
above.plot(series, ".", alpha=0.6, label="series")
above.plot(mean, label="mean over all segmentations")
above.plot(level, "--", label="the truth")
above.legend()
below.bar(np.arange(len(series)), change, width=1.0)
below.set(xlabel="time", ylabel="P(change)")
