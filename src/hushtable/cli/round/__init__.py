"""``hushtable round``: several organisations, files only, no server."""
