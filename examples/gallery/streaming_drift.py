"""Concept drift: a stream that changes its mind.

Half way through, what makes the class turns around. A forest that remembers everything needs as long to unlearn as it
took to learn; with `half_life` old rows fade, and it has recovered after a few hundred.
"""

import matplotlib.pyplot as plt
import numpy as np

import everytree as et

rng = np.random.default_rng(0)
n = 6000
models = {
    "half-life 300 rows": et.OnlineForestClassifier(half_life=300.0),
    "remembers everything": et.OnlineForestClassifier(),
}
hits = {name: np.zeros(n) for name in models}
for i in range(n):
    row = {"a": rng.uniform(), "b": rng.uniform()}
    label = (row["a"] > row["b"]) != (i >= n // 2)
    for name, model in models.items():
        hits[name][i] = model.predict_one(row) == label
        model.learn_one(row, label)

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for name, hit in hits.items():
    print(f"{name}: {hit.mean():.1%} right, {hit[n // 2 :].mean():.1%} after the turn")
    axes.plot(np.convolve(hit, np.ones(200) / 200, mode="valid"), label=name)
axes.axvline(n // 2, color="0.5", linestyle="--", linewidth=1)
axes.set(xlabel="row", ylabel="share right, of the last 200", title="Predicted, then learned")
axes.legend(loc="center left")
