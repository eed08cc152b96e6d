"""What is not installed, and which command brings it: said alike everywhere.

Imports nothing of ours, so that every folder can use it.
"""


def missing(what: str, extra: str, error: Exception) -> str:
    """`JAX is needed: pip install '.[jax]' in tensorplan's checkout (...)`.

    what: which feature needs which package.
    extra: the one of pyproject.toml that has the package. tensorplan is in no index,
        so pip takes it from a checkout.
    """
    return f"{what}: pip install '.[{extra}]' in tensorplan's checkout ({error})"
