"""scikit-learn estimators around forests; no mathematics. Importing the package imports none of them."""
