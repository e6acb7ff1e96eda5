"""The errors that end a conversion, by what the caller can do. Messages name the file, the place in it and the remedy."""


class InputError(Exception):
    """A flag, an input or the output folder must be fixed: exit code 2."""


class FinishedError(Exception):
    """The output folder holds a finished index; nothing was done: exit code 3."""


class ProcessError(Exception):
    """A process of the pool died: exit code 1."""


class EncodeError(Exception):
    """A tokenizer failed at a text. Arguments, for other processes to get it too: which of the texts, and why."""
