"""Survival curves of censored times.

Some patients left the study before anything happened. Their times are lower bounds, not times: `censored` says which.
Leaves of family "exponential" take such rows for what they are, so that a group with many of them is not thought to
be short-lived.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import everytree as et

rng = np.random.default_rng(0)
n = 1500
patients = pd.DataFrame({"stage": rng.integers(1, 5, n), "treated": rng.random(n) < 0.5})
mean = 60.0 / patients["stage"] * np.where(patients["treated"], 1.8, 1.0)
time = rng.exponential(mean)
left = rng.uniform(0.0, 60.0, n)
censored = left < time

settings = {"family": "exponential", "max_depth": 4, "random_state": 0}
honest = et.MetaTreeRegressor(**settings).fit(patients, np.minimum(time, left), censored=censored)
naive = et.MetaTreeRegressor(**settings).fit(patients, np.minimum(time, left))

stages = pd.DataFrame({"stage": [1, 2, 3, 4], "treated": True})
truth = 60.0 / stages["stage"] * 1.8
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.plot(stages["stage"], truth, color="0.5", linestyle="--", linewidth=1, label="truth")
axes.plot(stages["stage"], honest.predict(stages), "o-", label="censored rows as censored")
axes.plot(stages["stage"], naive.predict(stages), "o-", label="as if all had ended")
axes.set(xlabel="stage", ylabel="mean months", title=f"Treated patients; {censored.mean():.0%} left early")
axes.set_xticks([1, 2, 3, 4])
axes.legend()
print(pd.DataFrame({"truth": truth, "honest": honest.predict(stages), "naive": naive.predict(stages)}).round(1))
