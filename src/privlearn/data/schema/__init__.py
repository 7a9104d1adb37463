"""What is public about a table: its schema, drafted, written and read."""
