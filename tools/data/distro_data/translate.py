"""distro-data tokenizer: converts text to token numbers and back, for programs that cannot read a tokenizer.

Standard input to standard output, so that it is a `--tokenizer_command` (docs/data.md, "A tokenizer as a command").
"""

import argparse
import itertools
import sys

from .encoders import make_encoder, open_tokenizer
from .errors import InputError
from .shown import shown

DESCRIPTION = """\
Turns text into the numbers of its tokens, or back, with a tokenizer of distro-data:

  echo -n "Once upon" | distro-data tokenizer tokenizer.json encode      # 7454 2402
  echo 7454 2402 | distro-data tokenizer tokenizer.json decode           # Once upon

Nothing is put before or behind the text. distro-worker runs both:

  distro-worker generate --model DIR --prompt "Once upon" --tokenizer_command 'distro-data tokenizer tokenizer.json'
"""
EPILOG = """\
exit codes:
  0  done
  2  the tokenizer or the input must be fixed: the message says what
"""
UNKNOWN = "\N{REPLACEMENT CHARACTER}"


def parser():
    made = argparse.ArgumentParser(prog="distro-data tokenizer", description=DESCRIPTION, epilog=EPILOG, allow_abbrev=False,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("tokenizer", metavar="TOKENIZER", help="a tokenizer.json, a SentencePiece .model, or the word bytes")
    made.add_argument("direction", choices=("encode", "decode"))
    return made


def encode(encoder, given):
    """The numbers in a line; InputError: not UTF-8."""
    try:
        given.decode()
    except UnicodeDecodeError as wrong:
        raise InputError(f"standard input: byte {wrong.start} is not UTF-8; a text is UTF-8") from None
    (tokens,) = encoder.encode([given])
    return (" ".join(map(str, tokens)) + "\n").encode()


def parse(given):
    words = given.split()
    for word in words:
        if not word.isdigit():
            raise InputError(f"standard input: {word[:40].decode(errors='replace')!r} is no token: give numbers with blanks between them")
    return [int(word) for word in words]


def decode(encoder, given):
    """The text. A model may have more tokens than its tokenizer: unknown tokens become U+FFFD."""
    size = encoder.vocabulary_size()
    known = itertools.groupby(parse(given), lambda token: token < size)
    return b"".join(encoder.decode(list(run)) if inside else (UNKNOWN * len(list(run))).encode() for inside, run in known)


def main(arguments):
    flags = parser().parse_args(arguments)
    try:
        encoder = make_encoder(open_tokenizer(flags.tokenizer, "none", only_text=True))
        work = encode if flags.direction == "encode" else decode
        sys.stdout.buffer.write(work(encoder, sys.stdin.buffer.read()))
        return 0
    except InputError as wrong:
        print(f"distro-data: {shown(str(wrong))}", file=sys.stderr)
        return 2
