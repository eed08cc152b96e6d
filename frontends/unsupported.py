"""The exception for operations that a frontend cannot convert, and its message."""


class Unsupported(Exception):
    """Why an operation has no tgraph form: the end of the message that it is not
    supported, such as `with axis = 3` or `: it calls itself`."""


def not_supported(what: str, reason: object = "") -> str:
    """The message that `what` is not supported, which ends with the reason."""
    text = str(reason)
    space = " " if text and not text.startswith(":") else ""
    return f"{what} is not supported{space}{text}"
