"""What the holder changes while the server runs: in the console, or over HTTP."""
