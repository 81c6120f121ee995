"""nodescope completion: words at TAB for bash, zsh and fish."""

import argparse
import sys

SHELLS = ("bash", "zsh", "fish")
EXAMPLE = """example:
  eval "$(nodescope completion bash)"                                      # in ~/.bashrc
  eval "$(nodescope completion zsh)"                                       # in ~/.zshrc, after compinit
  nodescope completion fish > ~/.config/fish/completions/nodescope.fish    # once
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument("shell", choices=SHELLS, help="for which shell")


def run(options: argparse.Namespace) -> int:
    from argcomplete.shell_integration import shellcode

    sys.stdout.write(shellcode(["nodescope"], shell=options.shell))
    return 0
