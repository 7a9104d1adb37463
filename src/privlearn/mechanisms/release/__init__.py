"""One holder: from rows to coefficients that may leave."""
