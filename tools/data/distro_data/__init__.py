"""Turns text into token shards with an index (docs/data.md, "distro-data").

command_line   flags, messages, exit codes
inputs         which files the words of the command line mean
sources        one file as documents, in pieces; from any place on
pieces         where a long document is cut
encoders       text to tokens
pool           encoding in several processes, in order
shards         token and boundary files, and going on after an interruption
convert        the whole of it
translate      text to tokens and back, for other programs
"""
