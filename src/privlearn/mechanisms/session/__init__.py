"""Mechanisms that answer an analyst's queries from a kernel machine that stays with its holder."""
