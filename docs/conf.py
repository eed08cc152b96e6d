"""The configuration of Sphinx: Markdown through MyST, without network access."""

from pygments.lexers.special import TextLexer  # pyright: ignore[reportMissingTypeStubs]
from sphinx.application import Sphinx

import tensorplan

project = "tensorplan"
version = release = tensorplan.__version__
author = "the authors of tensorplan"
html_title = f"tensorplan {version}"

extensions = ["myst_parser"]
myst_heading_anchors = 4  # `page.md#heading`, as on GitHub
exclude_patterns = ["_build"]
nitpicky = True

html_theme = "furo"
html_show_sphinx = False


def setup(app: Sphinx) -> None:
    # Pygments has no lexer for MLIR, and its console lexer takes `%x` for a prompt.
    for language in ("console", "mlir", "output"):
        app.add_lexer(language, TextLexer)
