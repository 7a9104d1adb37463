"""The version's one place: the package's metadata, certificates, pages and commands read it here."""

__version__ = "0.2.0.dev0"
