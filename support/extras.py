"""The message for a missing optional package: which command installs it.

Imports nothing from tensorplan, so that every folder can use it.
"""


def missing_extra_message(what: str, extra: str, error: Exception) -> str:
    """`JAX is required: pip install '.[jax]' in tensorplan's checkout (...)`.

    what: the feature and the package that it needs.
    extra: the extra of pyproject.toml with the package. tensorplan is in no package
        index, so pip installs it from a checkout.
    """
    return f"{what}: pip install '.[{extra}]' in tensorplan's checkout ({error})"
