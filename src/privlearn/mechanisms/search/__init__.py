"""Choose among candidates under one promise."""
