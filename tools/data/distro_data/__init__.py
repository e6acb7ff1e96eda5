"""Turns text into token shards with an index (docs/data.md, "distro-data").

command_line   flags, messages, exit codes
inputs         the files of the command line's inputs
consumed       what of them is converted
foreign        what else may lie in the place of a file
sources        reads one file as documents, in pieces, from any place on
pieces         cuts long documents
encoders       text to tokens
streams        the standard streams
pool           encodes in several processes, in order
shards         token and boundary files; continues after an interruption
convert        a whole conversion
translate      text to tokens and back, for other programs
"""
