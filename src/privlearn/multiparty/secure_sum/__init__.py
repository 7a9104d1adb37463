"""Only the sum becomes known: masks, shares, and the noise that parties add."""
