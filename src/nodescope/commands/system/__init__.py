"""Commands about the installation itself, not about data."""
