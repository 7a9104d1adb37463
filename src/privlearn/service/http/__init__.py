"""What the HTTP interface and the pages share."""
