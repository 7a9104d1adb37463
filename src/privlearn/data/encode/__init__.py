"""From cells to vectors of norm at most 1."""
