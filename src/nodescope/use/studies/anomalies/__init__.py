"""What is unusual in a series: its views, what was usual in them, and the alarms of a walk through it."""
