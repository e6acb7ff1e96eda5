"""Finds Debian's clang programs, or ends with what to do."""

import shutil
import sys


def program(name):
    found = shutil.which(name)
    if not found:
        sys.exit(f"{name} is missing; scripts/install_dependencies --with_clang installs it")
    return found
