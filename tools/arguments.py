"""The argument parser and argument types that the command lines of all tools share.

The parser suggests corrections for misspelled options and choices. `--version` also
prints the versions of xDSL and Python.
"""

import argparse
import platform
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ..support.choices import one_of, suggest
from ..support.extras import missing_extra_message
from ..version import VERSION
from . import colors

SHELLS = ("bash", "zsh", "fish")
"""The shells that `--print-completion` supports."""

FILE = "the program; '-' is stdin, the default unless stdin is a terminal"
"""The help text of the input file that a tool reads."""

EXIT_CODES = """\
exit codes: 0 success, 1 invalid input, 2 usage error, 70 internal error
colors: only on a terminal, unless NO_COLOR=1 or CLICOLOR_FORCE=1"""


class Parser(argparse.ArgumentParser):
    """An `argparse.ArgumentParser` with help in 80 columns and suggestions in errors.

    `stray` is appended to the error about a surplus argument that is not an option.
    `words` are candidates for suggestions in addition to the options.
    """

    def __init__(
        self,
        prog: str,
        usage: str,
        description: str,
        epilog: str = "",
        *,
        stray: str = "",
    ):
        super().__init__(
            prog,
            f"{prog} {usage}",
            _wrapped(description),
            f"{epilog}\n{EXIT_CODES}" if epilog else EXIT_CODES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.register("type", int, integer)
        self.register("type", float, number)
        self.stray = stray
        self.words: Sequence[str] = ()
        self.add_argument(
            "-V", "-v", "--version", action=_Version, help="print versions"
        )
        self.add_argument(
            "--print-completion",
            action=_Completion,
            choices=SHELLS,
            help="print a shell script that completes this command; requires the "
            "extra 'completion'",
        )

    def knows(self, word: str) -> bool:
        """Whether `word` is no option or a known option, with or without a value."""
        name = word.partition("=")[0]
        return not word.startswith("--") or name in vars(self)["_option_string_actions"]

    def parse(self, args: Sequence[str] | None = None) -> argparse.Namespace:
        """Parses like `parse_args`, but suggests corrections for unknown arguments."""
        given = sys.argv[1:] if args is None else args
        # An option with an optional value takes it after `=` only, not the next word.
        values = {
            name: action.const
            for name, action in vars(self)["_option_string_actions"].items()
            if action.nargs == "?"
        }
        given = [f"{a}={values[a]}" if a in values else a for a in given]
        parsed, unknown = self.parse_known_args(given)
        if unknown:
            word = unknown[0].partition("=")[0]
            known = [*vars(self)["_option_string_actions"], *self.words]
            hint = suggest(word, known) if word.startswith("-") else self.stray
            self.error(f"unknown argument {unknown[0]!r}{hint}")
        return parsed

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(action, one_of(value, action.choices))

    def print_help(self, file: Any = None) -> None:
        print(self.format_help(), end="", file=file)  # argparse hides write errors

    def error(self, message: str) -> NoReturn:
        text = f"{self.prog}: error: {message}\n"
        hint = f"note: {self.prog} --help lists the options"
        self.exit(2, f"{colors.diagnostic(text + hint, sys.stderr)}\n")


def _wrapped(text: str) -> str:
    """Wraps paragraphs at 79 columns. Indented paragraphs are unchanged."""
    return "\n\n".join(
        part if "\n " in part or part.startswith(" ") else textwrap.fill(part, 79)
        for part in text.strip().split("\n\n")
    )


class _Version(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str, help: str):
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from xdsl import __version__ as xdsl_version

        python = platform.python_version()
        print(f"{parser.prog} {VERSION} (xdsl {xdsl_version}, Python {python})")
        parser.exit()


class _Completion(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str, **kwargs: Any):
        super().__init__(option_strings, argparse.SUPPRESS, **kwargs)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> NoReturn:
        from .completion import script

        try:
            print(script(parser, values), end="")
        except ImportError as error:
            parser.error(
                missing_extra_message(
                    "--print-completion requires the package shtab", "completion", error
                )
            )
        parser.exit()


def integer(text: str) -> int:
    """An argparse `type` in place of `int`, whose error says what is allowed."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}, expected an integer") from None


def number(text: str) -> float:
    """An argparse `type` in place of `float`, whose error says what is allowed."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}, expected a number") from None


def byte_count(text: str) -> int:
    """A number of bytes from text such as `4096` or `64MiB`; an argparse `type`."""
    from ..support.byte_sizes import parse_size

    try:
        return int(text)
    except ValueError:
        pass
    try:
        return parse_size(text)
    except ValueError as error:  # argparse names the argument
        raise argparse.ArgumentTypeError(str(error).removeprefix("size is ")) from None


def at_least(least: int, kind: Callable[[str], float]) -> Callable[[str], float]:
    """An argparse `type`: an `integer` or a `number` of at least `least`."""

    def bounded(text: str) -> float:
        value = kind(text)
        if not value >= least:
            raise argparse.ArgumentTypeError(f"{text}, expected {least} or more")
        return value

    return bounded
