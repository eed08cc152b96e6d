"""Tests the documentation: its commands and programs give the output that it shows, and
its links and references are valid.

README.md, CONTRIBUTING.md and every page in docs/ are run (support/documentation.py).
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from documentation import Page, blocks

import tensorplan
from tensorplan.integrations import minimalloc, tflm
from tensorplan.passes import get_all_passes
from tensorplan.planning import STRATEGIES
from tensorplan.tools import (
    pipelines,
    plan_audit,
    plan_opt,
    plan_run,
    plan_serve,
    plan_solve,
    plan_view,
)

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
    """Removes strategies that a page registers."""
    before = dict(STRATEGIES)
    yield
    STRATEGIES.clear()
    STRATEGIES.update(before)


@pytest.mark.thorough
@pytest.mark.filterwarnings("default")  # warnings of other packages, as users have them
@pytest.mark.parametrize("page", [p for p in PAGES if is_run(p)], ids=name)
def test_page_shows_the_real_output(
    page: Path, tmp_path: Path, served_tools: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.syspath_prepend(tmp_path)
    Page(page, tmp_path, served_tools).run(slow=False)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("page", [p for p in PAGES if is_run(p, slow=True)], ids=name)
def test_slow_commands_show_the_real_output(
    page: Path, tmp_path: Path, served_tools: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.syspath_prepend(tmp_path)
    Page(page, tmp_path, served_tools).run(slow=True)


WRONG = {
    "other output": "```console\n$ echo a\nb\n```",
    "more output": "```console\n$ printf 'a\\nb\\n'\na\n```",
    "failure": "```console\n$ false\n```",
    "an error that is not shown": "```console\n$ echo; exit 1\n\n```",
    "failure in a pipe": "```sh\nfalse | true\n```",
    "Python": "```python\nprint(1)\n```\n\n```output\n2\n```",
    "no reason": "<!-- not run: -->\n```sh\nfalse\n```",
    "an unknown directive": "<!-- unneeded: jax -->\n```sh\ntrue\n```",
    "no command": "```console\nfalse\n```",
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_wrong_output_is_found(text: str, tmp_path: Path, served_tools: Path):
    page = tmp_path / "page.md"
    page.write_text(f"# Title\n\n{text}\n")
    with pytest.raises(AssertionError):
        Page(page, tmp_path, served_tools).run(slow=False)


# Text outside of blocks


TOOLS = {
    "plan-audit": plan_audit.make_parser(),
    "plan-opt": plan_opt.make_parser(),
    "plan-run": plan_run.make_parser(),
    "plan-serve": plan_serve.make_parser(),
    "plan-solve": plan_solve.make_parser(),
    "plan-view": plan_view.make_parser(),
    "plan-minimalloc": minimalloc.make_parser(),
    "plan-tflm": tflm.make_parser(),
}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_options_in_inline_commands_exist(page: Path):
    """In commands such as `plan-view FILE --explain` within the text, each option and
    each pass exists."""
    commands = re.findall(rf"`({'|'.join(TOOLS)}) ([^`]+)`", without_code(page))
    for tool, arguments in commands:
        known = TOOLS[tool].format_help()
        for option in re.findall(r"(?<!\S)--?[a-zA-Z][\w-]*", arguments):
            there = rf"(?<![\w-]){re.escape(option)}(?![\w-])"
            assert re.search(there, known), f"{name(page)}: {tool} {arguments}"
        for pipeline in re.findall(r"-p '([^']+)'", arguments):
            pipelines.parse(pipeline, get_all_passes())


@pytest.mark.thorough
def test_arenas_in_the_table_of_the_readme():
    """The table in README.md shows the arenas of the current plans. The command beside
    the table runs only in the slow tests."""
    pytest.importorskip("jax")
    row = r"^(\w+) +([\d,]+) +([\d,]+) +([\d,]+) +[\d,]+$"
    table = re.findall(row, (ROOT / "README.md").read_text(), re.M)
    assert len(table) > 5
    models = {
        p.stem: p for d in ("tests/models", "examples") for p in ROOT.glob(f"{d}/*")
    }
    for model, *figures in table:
        planned = tensorplan.plan(tensorplan.from_stablehlo(models[model]))
        (pool,) = tensorplan.report(planned)["pools"]
        sizes = (pool["bytes"], pool["lower_bound_bytes"], pool["unshared_bytes"])
        assert figures == [f"{size:,}" for size in sizes], (
            f"{model}: benchmarks/peak.py says what README.md should"
        )


# Form


@pytest.mark.parametrize("page", ALL_PAGES, ids=name)
def test_languages_of_blocks_are_known(page: Path):
    unknown = {b.language for b in blocks(page)} - LANGUAGES
    assert not unknown, f"{name(page)}: {unknown}"


@pytest.mark.parametrize("page", ALL_PAGES, ids=name)
def test_commands_are_in_blocks_that_are_run(page: Path):
    indented = r"^ {4,}(?:\$ |plan-\w+ |pip3? |python3? ).*"
    assert not re.findall(indented, without_code(page), re.M), name(page)


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=name)
def test_page_opens_with_a_paragraph(page: Path):
    """A page begins with a title and a paragraph that says what it is for."""
    title, first, *_ = page.read_text().split("\n\n")
    assert re.fullmatch(r"# .+", title), f"{name(page)}: {title}"
    assert re.match(r"`?\w", first), f"{name(page)} starts with: {first}"


@pytest.mark.parametrize("page", ALL_PAGES, ids=name)
def test_no_section_is_empty(page: Path):
    """Only the section of unreleased changes may be empty."""
    text = without_code(page).replace("## [Unreleased]\n", "")
    empty = re.findall(r"^(#+) (.+)\n+(?=(#+) )", text, re.M)
    found = [title for level, title, following in empty if len(following) <= len(level)]
    assert not found, f"{name(page)}: {found}"


def without_code(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "text", page.read_text(), flags=re.M | re.S)


# Links


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub and MyST give the headings of a page."""
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
def test_links_have_existing_targets(page: Path):
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page)):
        if re.match(r"https?:", target):
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), f"{name(page)}: {target}"
        if anchor:
            assert anchor in anchors(file), f"{name(page)}: {target}"


# Generated files


def run_python(*arguments: str | Path) -> None:
    run = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_generated_pages_are_up_to_date():
    run_python(DOCS / "generate.py", "--check")


def test_screenshot_is_up_to_date(
    monkeypatch: pytest.MonkeyPatch,
):
    """If the screenshot is outdated, run `python docs/drawings.py`."""
    monkeypatch.syspath_prepend(DOCS)
    import drawings  # pyright: ignore[reportMissingImports]

    screenshot = drawings.SCREENSHOT.read_bytes()
    assert drawings.KEY + b"\0" + drawings.digest() in screenshot


@pytest.mark.thorough
def test_each_error_is_on_exactly_one_page(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(DOCS)
    import messages  # pyright: ignore[reportMissingImports]

    listed = messages.listed()
    assert len(listed) == len(set(listed)), "a file is on two pages"
    assert set(messages.by_file()) <= set(listed)


@pytest.mark.thorough
def test_the_site_builds_strictly(tmp_path: Path):
    pytest.importorskip("sphinx")
    pytest.importorskip("myst_parser")
    pytest.importorskip("furo")
    strict = ("-m", "sphinx", "--fail-on-warning", "--quiet")
    run_python(*strict, "-d", tmp_path / "doctrees", DOCS, tmp_path / "site")
    assert (tmp_path / "site" / "index.html").exists()
