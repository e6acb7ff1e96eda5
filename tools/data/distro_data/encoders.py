"""Text to tokens. An encoder is made once in every process, from a Tokenizer, which is plain data."""

import array
import contextlib
import dataclasses
import hashlib
import importlib.metadata
import os
import resource

from .errors import EncodeError, InputError
from .foreign import refuse_foreign
from .sources import BYTE_ORDER_MARK, regular_file

END_NAMES = ("<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>")
BYTE_VOCABULARY = 256
NEWLINE = 10
ENCODING_BYTES = 1 << 30  # beside the tokenizer itself; a unit of any text takes less than 300 MB


@dataclasses.dataclass(frozen=True)
class Tokenizer:
    kind: str               # "bytes", "tokenizer.json" or "sentencepiece"
    path: str               # of its file; "" for bytes
    content: bytes          # of its file, which may change while others read it
    sha256: str | None      # of its file; None for bytes
    library: str            # the encoding library with its version; "" for bytes
    vocabulary_size: int    # every token is below it
    end_token: int | None   # follows every document

    @property
    def token_bytes(self):
        return 2 if self.vocabulary_size <= 1 << 16 else 4


def open_tokenizer(name, end_token, only_text):
    """`name`: "bytes" or a file; `end_token`: "auto", "none" or a token's text. InputError: it cannot be used."""
    if name == "bytes":
        return Tokenizer("bytes", "", b"", None, "", BYTE_VOCABULARY, end_of_bytes(end_token, only_text))
    if os.path.isdir(name):
        raise InputError(f"{name}: is a folder; give the file {os.path.join(name, 'tokenizer.json')}")
    regular_file(name, "--tokenizer takes a tokenizer.json, a SentencePiece .model, or bytes")
    extension = os.path.splitext(name)[1].lower()
    if extension not in (".json", ".model"):
        raise InputError(f"{name}: is neither .json (tokenizer.json) nor .model (SentencePiece)")
    content = read(name)
    kind, package = ("tokenizer.json", "tokenizers") if extension == ".json" else ("sentencepiece", "sentencepiece")
    encoder = ENCODERS[kind](name, content)
    return Tokenizer(kind, name, content, hashlib.sha256(content).hexdigest(), f"{package} {importlib.metadata.version(package)}",
                     encoder.vocabulary_size(), None if end_token == "none" else encoder.end_token(end_token))


def read(path):
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as wrong:
        raise InputError(f"{path}: cannot be read: {wrong.strerror}") from None
    refuse_foreign(path, content)
    return content


@contextlib.contextmanager
def panics_as_errors():
    """A panic of a library in Rust is no Exception; here it becomes one."""
    try:
        yield
    except BaseException as wrong:
        if type(wrong).__name__ == "PanicException":
            raise RuntimeError(str(wrong)) from None
        raise


def limit_memory():
    """A text of a few bytes can become gigabytes in a tokenizer: this process then fails in place of the machine."""
    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[5]) * resource.getpagesize()
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit = used + ENCODING_BYTES
    if most == resource.RLIM_INFINITY or limit < most:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, most))


def end_of_bytes(end_token, only_text):
    if end_token == "auto":
        return None if only_text else NEWLINE
    if end_token == "none":
        return None
    if len(end_token.encode()) != 1:
        raise InputError("--end_token: with --tokenizer bytes it is one byte, or none")
    return end_token.encode()[0]


class BytesEncoder:
    def __init__(self, path, content):
        pass

    def encode(self, texts):
        for text in texts:
            tokens = array.array("H", bytes(2 * len(text)))
            memoryview(tokens).cast("B")[::2] = text
            yield tokens

    def vocabulary_size(self):
        return BYTE_VOCABULARY

    def decode(self, tokens):
        return bytes(tokens)


class JsonEncoder:
    """A tokenizer.json, without its template (no token precedes a text), truncation or padding. The text of
    a special token is encoded as plain text."""

    def __init__(self, path, content):
        os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the pool's processes are the parallelism
        os.environ["RUST_BACKTRACE"] = "0"
        import tokenizers
        self.path = path
        try:
            with panics_as_errors():
                self.tokenizer = tokenizers.Tokenizer.from_buffer(content.removeprefix(BYTE_ORDER_MARK))
        except Exception as wrong:  # the library raises plain exceptions
            raise InputError(f"{path}: is not a tokenizer.json that the library tokenizers {tokenizers.__version__} reads: {wrong}") from None
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self.tokenizer.encode_special_tokens = True

    def vocabulary_size(self):
        tokens = self.tokenizer.get_vocab(with_added_tokens=True).values()
        if not tokens:
            raise InputError(f"{self.path}: has no token")
        return max(tokens) + 1  # there may be gaps

    def end_token(self, name):
        special = [token.content for token in self.tokenizer.get_added_tokens_decoder().values() if token.special]
        if name != "auto":
            if (token := self.tokenizer.token_to_id(name)) is None:
                raise InputError(f"--end_token: {self.path} has no token {name}; its special ones: {' '.join(special) or 'none'}")
            return token
        known = [token for token in special if token in END_NAMES]
        if len(known) != 1:
            raise InputError(f"--end_token: {self.path} does not tell which token ends a document; give one of its special ones,"
                             f" or none: {' '.join(special) or '(it has none)'}")
        return self.tokenizer.token_to_id(known[0])

    def encode(self, texts):
        for encoding in self.tokenizer.encode_batch_fast([text.decode() for text in texts], add_special_tokens=False):
            yield encoding.ids

    def decode(self, tokens):
        return self.tokenizer.decode(tokens, skip_special_tokens=False).encode()


class SentencePieceEncoder:
    def __init__(self, path, content):
        import sentencepiece
        self.path = path
        try:
            self.processor = sentencepiece.SentencePieceProcessor(model_proto=content)
        except (RuntimeError, OSError) as wrong:
            raise InputError(f"{path}: is not a SentencePiece model: {wrong}; where a tokenizer.json lies beside it, give that") from None

    def vocabulary_size(self):
        return self.processor.get_piece_size()

    def end_token(self, name):
        if name == "auto":
            if self.processor.eos_id() < 0:
                raise InputError(f"--end_token: {self.path} has no token that ends a text; give a piece, or none")
            return self.processor.eos_id()
        token = self.processor.piece_to_id(name)
        if self.processor.id_to_piece(token) != name:
            raise InputError(f"--end_token: {self.path} has no piece {name}")
        return token

    def encode(self, texts):
        return self.processor.encode([text.decode() for text in texts], out_type=int, num_threads=1)

    def decode(self, tokens):
        return self.processor.decode(tokens).encode()


ENCODERS = {"bytes": BytesEncoder, "tokenizer.json": JsonEncoder, "sentencepiece": SentencePieceEncoder}


def make_encoder(tokenizer):
    """Functions that encode texts ([UTF-8 bytes] -> the tokens of each) and decode tokens to UTF-8."""
    return ENCODERS[tokenizer.kind](tokenizer.path, tokenizer.content)


class Encoder:
    """Encodes units: lists of (text, ends its document)."""

    def __init__(self, tokenizer):
        self.end_token = tokenizer.end_token
        self.typecode = "H" if tokenizer.token_bytes == 2 else "I"
        self.encoder = make_encoder(tokenizer)

    def encode(self, unit):
        """(array of the tokens, [tokens up to the end of each document that ends here]). EncodeError: the tokenizer fails at one."""
        tokens = array.array(self.typecode)
        ends = []
        for (_, last), encoded in zip(unit, self._encode([text for text, _ in unit])):
            tokens.extend(encoded if isinstance(encoded, array.array) else array.array(self.typecode, encoded))
            if last:
                if self.end_token is not None:
                    tokens.append(self.end_token)
                ends.append(len(tokens))
        return tokens, ends

    def _encode(self, texts):
        try:
            with panics_as_errors():
                return list(self.encoder.encode(texts))
        except Exception as wrong:
            if len(texts) == 1:
                raise EncodeError(0, str(wrong) or type(wrong).__name__) from None
        encoded = []
        for number, text in enumerate(texts):  # alone, to find the one
            try:
                encoded += self._encode([text])
            except EncodeError as wrong:
                raise EncodeError(number, wrong.args[1]) from None
        return encoded
