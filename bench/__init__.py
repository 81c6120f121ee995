"""
Every performance figure we claim, measured: `python -m bench`.

A figure alone says more about the machine than about us. So each stands beside
an anchor measured in the same run, interleaved with ours, and goals are set on
the ratio wherever there is one.
"""
