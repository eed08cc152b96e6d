"""tensorplan: from tensor programs to one arena per device, at offsets fixed early."""

__version__ = "0.1.0"
