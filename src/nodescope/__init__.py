"""nodescope: what every container, process and device on a node does, once a second."""

__version__ = "0.1.0"
