"""What one connection may cost, and who gives way: places by address, accepting, TLS in small, unread answers."""
