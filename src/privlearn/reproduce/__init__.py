"""The papers' tables and figures, run again: one file a paper."""
