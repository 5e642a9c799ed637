"""Insurance claim frequency: Poisson counts with exposure.

Policies were insured for different times, so counts cannot be compared as they are. With `family="poisson"` a leaf
has a rate, and `exposure` is the time each count was collected in. Predictions are for a time of one's choice, with
an interval.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import everytree as et

rng = np.random.default_rng(0)
n = 3000
policies = pd.DataFrame({"age": rng.integers(18, 85, n), "region": rng.choice(["city", "town", "country"], n)})
years = rng.uniform(0.1, 3.0, n)
rate = 0.15 + 0.5 * (policies["age"] < 25) + 0.2 * (policies["region"] == "city")
claims = rng.poisson(rate * years)

model = et.MetaForestRegressor(50, family="poisson", random_state=0).fit(policies, claims, exposure=years)

ages = np.arange(18, 85)
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for region in ("city", "country"):
    asked = pd.DataFrame({"age": ages, "region": region})
    axes.plot(ages, model.predict(asked, exposure=np.ones(len(ages))), label=f"{region}, predicted")
    truth = 0.15 + 0.5 * (ages < 25) + 0.2 * (region == "city")
    axes.plot(ages, truth, color="0.5", linestyle="--", linewidth=1)
axes.set(xlabel="age", ylabel="claims a year", title="Claims a year; dashed: the truth")
axes.legend()

five_years = model.predict_interval(pd.DataFrame({"age": [20, 50], "region": ["city", "town"]}), exposure=[5.0, 5.0])
print("claims in five years, 90% intervals:", five_years.tolist())
