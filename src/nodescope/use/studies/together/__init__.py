"""Whether two series moved together beyond chance, and which of them moved first."""
