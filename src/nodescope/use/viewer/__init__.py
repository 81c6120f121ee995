"""The viewer: an HTTP API over archives and live tails, and the web page that draws them."""
