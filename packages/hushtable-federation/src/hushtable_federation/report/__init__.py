"""Pages about rounds, and the sites behind a result."""
