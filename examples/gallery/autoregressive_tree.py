"""Time series forecasting with an autoregressive tree.

The next value is a line in the last ones, but another line above a threshold than below. Lags are ordinary columns: a
tree with linear leaves finds the threshold, and its forecasts come with intervals, one step ahead and from rows that it
has not seen.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import everytree as et

rng = np.random.default_rng(0)
values = [0.0, 0.0]
for _ in range(1200):
    last, before = values[-1], values[-2]
    centre = 1.0 + 0.8 * last - 0.3 * before if last <= 1.0 else 3.0 - 0.9 * last
    values.append(centre + 0.4 * rng.normal())
series = pd.Series(values)
table = pd.DataFrame({f"{k} ago": series.shift(k) for k in (1, 2)}).assign(now=series).dropna()
past, future = table[:1000], table[1000:]

model = et.MetaTreeRegressor(max_depth=3, family="linear", random_state=0).fit(past.drop(columns="now"), past["now"])
line = np.linalg.lstsq(np.c_[np.ones(1000), past[["1 ago", "2 ago"]]], past["now"], rcond=None)[0]
one_line = np.c_[np.ones(len(future)), future[["1 ago", "2 ago"]]] @ line
X, y = future.drop(columns="now"), future["now"].to_numpy()
predicted, ends = model.predict(X), model.predict_interval(X, coverage=0.9)
print(f"error of one step ahead: tree {np.sqrt(np.mean((predicted - y) ** 2)):.3f}, ", end="")
print(f"one line {np.sqrt(np.mean((one_line - y) ** 2)):.3f}, the noise itself 0.400")
print(f"90% intervals hold {np.mean((ends[:, 0] <= y) & (y <= ends[:, 1])):.1%} of {len(y)} new values")
print(model.to_text(max_depth=1))

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.plot(past["1 ago"], past["now"], ".", markersize=3, alpha=0.4, label="series")
order = np.argsort(X["1 ago"].to_numpy())
axes.plot(X["1 ago"].to_numpy()[order], predicted[order], ".", label="forecasts of new values")
axes.set(xlabel="last value", ylabel="next value")
axes.legend()
