"""An experiment: the numbers of all containers by a BPF iterator instead of files."""
