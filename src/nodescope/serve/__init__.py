"""What every HTTP server of ours shares: listening, tokens, bounded connections."""
