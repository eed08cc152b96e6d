"""The exception for operations that a frontend can't convert."""


class Unsupported(Exception):
    """Why an operation has no tgraph form; follows its name in messages."""
