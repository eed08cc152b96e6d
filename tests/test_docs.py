"""The documentation does what it says: its commands, programs, links and references.

README.md, CONTRIBUTING.md and every page in docs/ are run (support/documentation.py).
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from documentation import Page, blocks

from tensorplan.planning import STRATEGIES

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(p for p in sorted(DOCS.rglob("*.md")) if p.parent.name != "reference"),
]
ALL_PAGES = [*PAGES, *sorted((DOCS / "reference").glob("*.md")), ROOT / "CHANGELOG.md"]

LANGUAGES = {"", *"c console csv json mlir output python sh text {toctree}".split()}


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def is_run(page: Path, *, slow: bool = False) -> bool:
    return any(
        block.language in ("console", "python", "sh")
        and (not slow or block.says("takes minutes") is not None)
        for block in blocks(page)
    )


@pytest.fixture(autouse=True)
def strategies_stay() -> Iterator[None]:
    """What a page registers is gone after it."""
    before = dict(STRATEGIES)
    yield
    STRATEGIES.clear()
    STRATEGIES.update(before)


@pytest.mark.filterwarnings("default")  # of others, as a reader has them
@pytest.mark.parametrize("page", [p for p in PAGES if is_run(p)], ids=name)
def test_what_the_page_shows_happens(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.syspath_prepend(tmp_path)
    Page(page, tmp_path).run(slow=False)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("page", [p for p in PAGES if is_run(p, slow=True)], ids=name)
def test_what_takes_minutes_happens_too(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.syspath_prepend(tmp_path)
    Page(page, tmp_path).run(slow=True)


WRONG = {
    "other output": "```console\n$ echo a\nb\n```",
    "more output": "```console\n$ printf 'a\\nb\\n'\na\n```",
    "failure": "```console\n$ false\n```",
    "an error that is not shown": "```console\n$ echo; exit 1\n\n```",
    "failure in a pipe": "```sh\nfalse | true\n```",
    "Python": "```python\nprint(1)\n```\n\n```output\n2\n```",
    "no reason": "```sh\n# not run:\nfalse\n```",
    "no command": "```console\nfalse\n```",
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_what_does_not_happen_is_noticed(text: str, tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(f"# Title\n\n{text}\n")
    with pytest.raises(AssertionError):
        Page(page, tmp_path).run(slow=False)


# Form


@pytest.mark.parametrize("page", ALL_PAGES, ids=name)
def test_blocks_are_of_known_languages(page: Path):
    unknown = {b.language for b in blocks(page)} - LANGUAGES
    assert not unknown, f"{name(page)}: {unknown}"


@pytest.mark.parametrize("page", ALL_PAGES, ids=name)
def test_commands_are_in_blocks_that_are_run(page: Path):
    indented = r"^ {4,}(?:\$ |plan-\w+ |pip3? |python3? ).*"
    assert not re.findall(indented, without_code(page), re.M), name(page)


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=name)
def test_the_first_line_says_for_whom_the_page_is(page: Path):
    title, first, *_ = page.read_text().split("\n\n")
    assert re.fullmatch(r"# .+", title), f"{name(page)}: {title}"
    assert first.startswith("For "), f"{name(page)} starts with: {first}"


@pytest.mark.parametrize("page", ALL_PAGES, ids=name)
def test_no_section_is_empty(page: Path):
    empty = re.findall(r"^(#+) (.+)\n+(?=(#+) )", without_code(page), re.M)
    found = [title for level, title, following in empty if len(following) <= len(level)]
    assert not found, f"{name(page)}: {found}"


def without_code(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "text", page.read_text(), flags=re.M | re.S)


# Links


def anchors(page: Path) -> set[str]:
    """What GitHub and MyST call the headings."""
    found: list[str] = []
    for title in re.findall(r"^#+ (.+)$", without_code(page), re.M):
        plain = re.sub(r"\\(.)", r"\1", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title))
        anchor = re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")
        count = found.count(anchor)
        found.append(anchor)
        if count:
            found.append(f"{anchor}-{count}")
    return set(found)


@pytest.mark.parametrize("page", ALL_PAGES, ids=name)
def test_links_lead_somewhere(page: Path):
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page)):
        if re.match(r"https?:", target):
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), f"{name(page)}: {target}"
        if anchor:
            assert anchor in anchors(file), f"{name(page)}: {target}"


# What follows from the source


def run_python(*arguments: str | Path) -> None:
    run = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_what_is_generated_is_up_to_date():
    run_python(DOCS / "generate.py", "--check")


def test_every_error_is_on_one_page(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(DOCS)
    import messages  # pyright: ignore[reportMissingImports]

    listed = messages.listed()
    assert len(listed) == len(set(listed)), "a file is on two pages"
    assert set(messages.by_file()) <= set(listed)


def test_the_site_builds_strictly(tmp_path: Path):
    pytest.importorskip("sphinx")
    pytest.importorskip("myst_parser")
    pytest.importorskip("furo")
    strict = ("-m", "sphinx", "--fail-on-warning", "--quiet")
    run_python(*strict, "-d", tmp_path / "doctrees", DOCS, tmp_path / "site")
    assert (tmp_path / "site" / "index.html").exists()
