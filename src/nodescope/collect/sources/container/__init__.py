"""Containers: the cgroup tree, who is in it, and what its files say."""
