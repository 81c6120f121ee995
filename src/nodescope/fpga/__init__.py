"""What is known of a node's FPGAs, and the annotations that carry it to the scheduler."""
