"""What analysts ask for, from the request to the result."""
