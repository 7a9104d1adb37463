"""Answers of a kernel machine that stays with its holder."""
