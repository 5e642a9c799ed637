"""Calibrated probabilities: a reliability diagram.

A random forest's probabilities are averages of votes: near 0 and 1 they are too timid, and on small tables they are
noisy. A forest of meta-trees is tuned by rows its trees have not seen. The curves show, for held-out rows grouped by
predicted probability, how often the class really came.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict

import everytree as et

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
models = {
    "forest of meta-trees": et.MetaForestClassifier(100, random_state=0),
    "random forest": RandomForestClassifier(100, random_state=0),
}

figure, axes = plt.subplots(figsize=(5, 4.5), layout="constrained")
axes.plot([0, 1], [0, 1], color="0.5", linestyle="--", linewidth=1, label="perfect")
for name, model in models.items():
    probs = cross_val_predict(model, X, y, cv=3, method="predict_proba")[:, 1]
    loss = log_loss(y, probs)
    print(f"{name:22} log-loss {loss:.3f}")
    happened, predicted = calibration_curve(y, probs, n_bins=6, strategy="quantile")
    axes.plot(predicted, happened, marker="o", label=f"{name}, log-loss {loss:.3f}")
axes.set(xlabel="predicted probability", ylabel="how often it happened", title="Held-out tumours")
axes.legend(loc="upper left")
assert np.isfinite(loss)
