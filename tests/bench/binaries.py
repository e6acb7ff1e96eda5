"""The folder of the programs that a test of bench/ runs: BIN, from --bin."""
import argparse
import pathlib
import sys

_parser = argparse.ArgumentParser(add_help=False)
_parser.add_argument("--bin", type=pathlib.Path, required=True)
_options, sys.argv[1:] = _parser.parse_known_args()
BIN = _options.bin
