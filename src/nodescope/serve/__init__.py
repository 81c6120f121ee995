"""What our HTTP servers share: listening, gate, token, bodies, JSON, Prometheus text; and our HTTP client."""
