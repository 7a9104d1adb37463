"""Commands of an analyst who asks a server."""
