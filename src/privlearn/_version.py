"""The version's one place: the package's metadata, certificates, pages and commands read it here."""

__version__ = "1.0.0rc1"
