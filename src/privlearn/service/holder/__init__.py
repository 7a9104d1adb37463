"""What the holder declares: settings, data sets, budgets."""
