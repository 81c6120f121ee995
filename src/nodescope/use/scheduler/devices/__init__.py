"""Whole devices (GPUs and their like): how many each node has, how many are taken, and where one more fits."""
