"""The studies over many nodes and days, on Dask; Dask itself is loaded by cluster.py only."""
