"""The kernel's network stack: one module per source."""
