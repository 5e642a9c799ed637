"""Prediction intervals where the noise differs from row to row.

The noise grows along x. A forest of meta-trees predicts a whole distribution for each row, so its intervals are
narrow where the data are and wide where they are not, and a 90% interval holds about 90% of what comes next.
"""

import matplotlib.pyplot as plt
import numpy as np

import everytree as et

rng = np.random.default_rng(0)


def draw(n):
    x = rng.uniform(0.0, 1.0, n)
    return x[:, None], np.sin(6.0 * x) + (0.05 + 0.5 * x) * rng.standard_normal(n)


X, y = draw(1000)
X_new, y_new = draw(1000)
model = et.MetaForestRegressor(50, random_state=0).fit(X, y)
low, high = model.predict_interval(X_new, coverage=0.9).T
print(f"coverage of new rows: {np.mean((low <= y_new) & (y_new <= high)):.1%}")

grid = np.linspace(0.0, 1.0, 200)[:, None]
quantiles = model.predict_quantiles(grid, [0.05, 0.25, 0.5, 0.75, 0.95])
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.scatter(X[:, 0], y, s=4, color="0.5", alpha=0.6)
axes.fill_between(grid[:, 0], quantiles[:, 0], quantiles[:, 4], color="C0", alpha=0.2, linewidth=0, label="90%")
axes.fill_between(grid[:, 0], quantiles[:, 1], quantiles[:, 3], color="C0", alpha=0.35, linewidth=0, label="50%")
axes.plot(grid[:, 0], quantiles[:, 2], color="C0", label="median")
axes.set(xlabel="x", ylabel="y", title="Quantiles of one forest")
axes.legend()
