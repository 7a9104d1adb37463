"""The version's one place: the package's metadata, certificates, pages and commands read it here."""

__version__ = "0.1.0"
