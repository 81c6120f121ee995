"""Answers about every container at once, read in coarse steps: what changed, sums of groups, shares of limits."""
