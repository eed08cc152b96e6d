"""The picture of a program's plan in a notebook, which `tensorplan.view` returns."""

import os
from dataclasses import dataclass
from html import escape

from ..common import write_atomically
from . import page
from .formats import rendered
from .model import PlanView

_HEIGHT = 640  # pixels


@dataclass(frozen=True, repr=False)
class View:
    """A plan that notebooks display as plan-view's page."""

    plan: PlanView

    def __repr__(self) -> str:
        pools = "; ".join(f"{p.name}: {p.figures}" for p in self.plan.pools)
        return f"<View: {pools}>"

    def _repr_html_(self) -> str:
        """The page in a sandboxed frame, which runs its script and loads nothing."""
        return (
            f'<iframe sandbox="allow-scripts" width="100%" height="{_HEIGHT}" '
            f'style="border: 0" srcdoc="{escape(page.page([self.plan]))}"></iframe>'
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a page (`.html`), a drawing (`.svg`), or a bitmap (`.png`, which
        requires the extra `png`).

        Raises `ValueError` for another suffix.
        """
        write_atomically(os.fspath(path), rendered(os.fspath(path), [self.plan]))
