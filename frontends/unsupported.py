"""What a frontend refuses."""


class Unsupported(Exception):
    """Why an operation has no tgraph form; follows its name in messages."""
