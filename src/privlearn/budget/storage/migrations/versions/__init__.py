"""One revision script per format of each part, named after it; `privlearn.budget.storage.migrations` runs them."""
