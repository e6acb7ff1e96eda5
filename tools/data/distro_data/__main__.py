import sys

from .command_line import main

if __name__ == "__main__":  # the pool's processes also import this file
    sys.exit(main())
