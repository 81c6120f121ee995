"""Sensors, disks in arrays, memory errors, clocks and units of the machine: one module per source."""
