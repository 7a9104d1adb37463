"""Studies that one looks at: methods compared, bounds tabulated, plans drawn."""
