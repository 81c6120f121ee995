"""What a person sees in the picture of a series at one glance, and says of it in a few words."""
