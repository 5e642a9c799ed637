"""Interpretable decision tree with the probability of each split.

One structure, to be read. Each box has the question it asks and the probability that it is asked at all, given the
data: a split that CART would draw like any other may turn out to be less than certain.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

import everytree as et

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = et.MetaTreeClassifier(max_depth=3, split_prior=0.5, alpha=0.5, random_state=0).fit(X, y > 150)
print(model.to_text())

figure, axes = plt.subplots(figsize=(9, 5), layout="constrained")
model.plot(ax=axes)
