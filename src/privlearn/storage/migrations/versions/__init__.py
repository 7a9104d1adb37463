"""One script for each format of each part, named after it; `privlearn.storage.migrations` runs them."""
