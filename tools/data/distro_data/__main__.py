import sys

from .command_line import main

if __name__ == "__main__":  # processes of the pool import this file too
    sys.exit(main())
