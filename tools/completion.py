"""Scripts that complete the tools' command lines in bash, zsh and fish, made by shtab.

    eval "$(plan-opt --print-completion bash)"
    plan-opt -p 'plan-pipeline{eff<TAB>

The scripts are static: they contain the names of options, passes, options of passes,
and strategies, and don't start Python. A shell function completes the argument of `-p`.
"""

import argparse
import shlex
from collections.abc import Iterator, Mapping, Sequence

from xdsl.passes import get_pass_option_infos
from xdsl.universe import Universe

from ..passes import get_all_passes

_CANDIDATES = r"""
  word=${1#[\"\']}
  rest=${word##*\}}
  case $rest in
    *{*)  # in a pass's options
      pass=${rest%%\{*}; pass=${pass##*,}; pass=${pass##* }
      last=${rest##*[\{ ]}
      case $last in
        strategy=*) words=$STRATEGIES; last=${last#*=} ;;
        *) words=; case $pass in OPTIONS esac ;;
      esac ;;
    *) last=${rest##*[, ]}; words=$PASSES ;;
  esac
  head=${word%"$last"}
  for found in $words; do
    case $found in "$last"*) printf "%s\n" "$head$found" ;; esac
  done
"""
"""A POSIX sh script; `$1` is the word up to the cursor."""


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script for one of `SHELLS`. Raises `ImportError` without shtab."""
    import shtab

    pipeline = _pipeline(shell)
    for action in vars(parser)["_actions"]:
        metavar = str(action.metavar or "")
        if metavar == "PIPELINE":
            action.complete = {
                "bash": "_tensorplan_pipeline",
                "zsh": "_tensorplan_pipeline_zsh",
                "fish": "(_tensorplan_pipeline (commandline -ct))",
                "preamble": {shell: pipeline},
            }
        elif metavar == "PASS":
            action.choices = ("all", *_passes())
        elif action.dest in ("strategy", "compare"):
            action.choices = _strategies()
        elif "FILE" in metavar or "." in metavar:
            action.complete = shtab.FILE
    text = shtab.complete(parser, shell)
    if shell != "bash":
        return text
    tool = parser.prog.replace("-", "_")
    return (
        f"{text}\n"
        f"_{tool}() {{\n"
        f'  _shtab_{tool} "$@"\n'
        "  case ${COMPREPLY[0]-} in *[={]) compopt -o nospace 2>/dev/null ;; esac\n"
        "}\n"
        f"complete -o bashdefault -F _{tool} {parser.prog}\n"
    )


def _pipeline(shell: str) -> str:
    """The definition of the shell function that completes pipelines."""
    options = _options()
    passes = [
        word
        for name, own in options.items()
        for word in ([name, f"{name}{{"] if own else [name])
    ]
    cases = " ".join(
        f"{name}) words={shlex.quote(' '.join(own))} ;;"
        for name, own in options.items()
        if own
    )
    body = (
        _CANDIDATES.replace("$STRATEGIES", shlex.quote(" ".join(_strategies())))
        .replace("$PASSES", shlex.quote(" ".join(passes)))
        .replace("OPTIONS", cases)
    )
    if shell == "fish":
        quoted = body.replace("\\", "\\\\").replace("'", "\\'")
        return f"function _tensorplan_pipeline\n  sh -c '{quoted}' sh $argv[1]\nend\n"
    if shell == "bash":
        names = "word rest pass last words head found"
        return f"_tensorplan_pipeline() {{\n  local {names}\n{body}}}\n"
    return (
        "_tensorplan_pipeline_zsh() {\n"
        "  local -a found\n"
        f'  found=(${{(f)"$(sh -c {shlex.quote(body)} sh "${{(Q)PREFIX}}")"}})\n'
        "  compadd -Q -S '' -- $found\n"
        "}\n"
    )


def _passes() -> Sequence[str]:
    return list(get_all_passes() | Universe.get_multiverse().all_passes)


def _options() -> Mapping[str, Sequence[str]]:
    """The options of each pass, as `name=`."""
    return dict(_each_option())


def _each_option() -> Iterator[tuple[str, Sequence[str]]]:
    for name, factory in (
        get_all_passes() | Universe.get_multiverse().all_passes
    ).items():
        try:
            infos = get_pass_option_infos(factory())
        except ImportError:  # an optional package is not installed
            infos = ()
        yield name, [f"{info.name.replace('_', '-')}=" for info in infos]


def _strategies() -> Sequence[str]:
    from ..planning import STRATEGIES

    return list(STRATEGIES)
