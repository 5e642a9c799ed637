"""Former place of estimators for Dask: pickles of them and imports find here what to use instead."""

raise ImportError(
    "the Dask* estimators are gone: pass the collection to fit_batches of the estimator without Dask in its name, and "
    "predict by rows.map_partitions(model.predict)"
)
