"""`sluice completion`: prints what completes the command's words in a shell."""

from enum import StrEnum
from typing import Annotated, Final

import typer
from typer._completion_shared import get_completion_script

PROGRAM: Final = "sluice"


class Shell(StrEnum):
    """The shells that complete words of `sluice`."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(help="Yours.")],
) -> None:
    """Print a shell's completion of this command, for the shell to evaluate.

    eval "$(sluice completion bash)"; zsh likewise; in fish: sluice completion fish | source.
    """
    print(get_completion_script(prog_name=PROGRAM, complete_var=f"_{PROGRAM.upper()}_COMPLETE", shell=shell.value))
