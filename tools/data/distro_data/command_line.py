"""distro-data: flags, messages and exit codes."""

import argparse
import os
import signal
import sys

from . import streams, translate
from .convert import Options, convert
from .encoders import open_tokenizer
from .errors import FinishedError, InputError, ProcessError
from .inputs import FORMATS, open_inputs
from .shown import shown
from .sources import TextFile

DESCRIPTION = """\
Turns text into token shards with an index, which distro-worker reads:

  distro-data --tokenizer tokenizer.json --out shards corpus.jsonl
  distro-worker ... --data shards/index.json

Inputs are read in the order that they are given in, and make one sequence of tokens:

  .txt .md .pod     the whole file is one document
  .jsonl .ndjson    one JSON object a line; --field names the text
  .parquet          one document a row; --field names the column
  a folder          a dataset that Hugging Face's `datasets` saved with save_to_disk; --field names the column

The end token (--end_token) follows each document. A document of more than 256 KiB is encoded in pieces that end at
lines. An empty one is left out.

`distro-data tokenizer` converts text to token numbers and back, for other programs (`distro-data tokenizer --help`).

All inputs are looked at before work begins. A row that cannot be converted stops it, and the message names the row: repair it,
and the same command continues.

The same inputs, tokenizer and flags give the same bytes, for any --processes. After an interruption, even by kill -9, the
same command continues the conversion, and the result has the same bytes.
"""
EPILOG = """\
examples:
  distro-data --tokenizer bytes --out shards book.txt             # a token is a byte: the tokens of the text itself
  distro-data --tokenizer tokenizer.json --out shards part-*.jsonl
  distro-data --tokenizer tokenizer.json --out shards --field content part-*.parquet
  distro-data --tokenizer spiece.model --out shards dataset/train

exit codes:
  0    done
  1    failure: such as a full disk or a killed process; the same command continues
  2    a flag, an input or the output folder must be fixed: the message names it, with line or row; the same command continues
  3    --out holds a finished index; nothing was done
  129, 130, 143  interrupted (SIGHUP, SIGINT, SIGTERM); the same command continues
"""
EXIT_FAILED, EXIT_USAGE, EXIT_FINISHED, EXIT_SIGNAL = 1, 2, 3, 128
STOPS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


class Stopped(BaseException):
    """A signal asked for the end; its argument is the signal."""


def whole_number(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of 1 or more")
    return int(text)


def processes(text):
    number, cores = whole_number(text), len(os.sched_getaffinity(0))
    if number > 32 * cores:
        raise argparse.ArgumentTypeError(f"{number} is more than 32 for each of the {cores} processors")
    return number


def parser():
    cores = len(os.sched_getaffinity(0))
    made = argparse.ArgumentParser(prog="distro-data", description=DESCRIPTION, epilog=EPILOG, allow_abbrev=False,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("inputs", nargs="+", metavar="INPUT", help="file, or folder of a dataset")
    made.add_argument("--tokenizer", required=True, metavar="FILE",
                      help="a tokenizer.json (Hugging Face tokenizers), a SentencePiece .model, or the word bytes")
    made.add_argument("--out", required=True, metavar="DIR",
                      help="folder for shards, documents.u64 and index.json: a new one, or that of an interrupted conversion")
    made.add_argument("--field", default="text", metavar="NAME", help="field or column that holds the text; default: %(default)s")
    made.add_argument("--input_format", default="auto", choices=("auto", *FORMATS),
                      help="format of the inputs that are files; auto: by name")
    made.add_argument("--end_token", default="auto", metavar="TOKEN",
                      help="comes behind every document; none: nothing. auto: of a tokenizer.json the one of <|endoftext|>,"
                      " <|end_of_text|>, </s>, <eos> that it has; of a SentencePiece model its own; with bytes a newline, and"
                      " nothing where all inputs are text files")
    made.add_argument("--shard_tokens", type=whole_number, default=1 << 27, metavar="N",
                      help="tokens of every shard but the last; default: %(default)s")
    made.add_argument("--processes", type=processes, default=cores, metavar="N",
                      help="that encode; each holds the tokenizer and a few MB of text. Default: the cores, %(default)s")
    return made


def run(flags):
    files = open_inputs(flags.inputs, flags.input_format, flags.field)
    tokenizer = open_tokenizer(flags.tokenizer, flags.end_token, all(isinstance(file, TextFile) for file in files))
    options = Options(out=flags.out, files=files, tokenizer=tokenizer, field=flags.field, shard_tokens=flags.shard_tokens,
                      processes=flags.processes)
    index, empty = convert(options)
    said = streams.line(
        f"{os.path.join(flags.out, 'index.json')}: {index['tokens']} tokens of {index['documents']['count']} documents in"
        f" {len(index['shards'])} shards, vocabulary {index['vocabulary_size']}, fingerprint {index['fingerprint']}")
    if empty:
        said += f"left out: {empty} documents without text\n"
    return said


def main(arguments=None):
    streams.prepare()
    try:
        code = work(sys.argv[1:] if arguments is None else arguments)
    except SystemExit as end:  # argparse's, after --help and wrong flags
        code = end.code
    except OSError as wrong:
        return streams.unwritten(wrong)
    return streams.finish(code)


def work(words):
    if words[:1] == ["tokenizer"]:
        return translate.main(words[1:])
    flags = parser().parse_args(words)
    for number in STOPS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(number, stop)
    try:
        said = run(flags)
    except InputError as wrong:
        return fail(wrong, EXIT_USAGE)
    except FinishedError as wrong:
        return fail(wrong, EXIT_FINISHED)
    except (ProcessError, OSError) as wrong:
        return fail(f"{wrong}; the same command continues where this one ended", EXIT_FAILED)
    except MemoryError:
        return fail("out of memory; give fewer --processes: the same command continues where this one ended", EXIT_FAILED)
    except Stopped as stopped:
        (number,) = stopped.args
        return fail(f"stopped by {signal.Signals(number).name}; the same command continues where this one ended", EXIT_SIGNAL + number)
    sys.stdout.write(said)
    return 0


def stop(number, frame):
    raise Stopped(number)


def fail(message, code):
    streams.say(streams.line(f"distro-data: {message}"))
    return code
