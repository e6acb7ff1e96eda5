"""distro-data tokenizer: text to the numbers of tokens and back, as a --tokenizer_command."""

import subprocess
import sys
import unittest

from distro_data.encoders import Encoder, open_tokenizer
from helpers import TEXTS, FolderTest, json_tokenizer, sentencepiece_model

BYTE_LEVEL = {"decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}}


class TranslateTest(FolderTest):
    def translate(self, tokenizer, direction, given, code=0):
        done = subprocess.run([sys.executable, "-B", "-m", "distro_data", "tokenizer", str(tokenizer), direction], input=given,
                              capture_output=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr.decode()

    def round_trip(self, tokenizer, text):
        numbers = self.translate(tokenizer, "encode", text.encode())
        tokens, _ = Encoder(open_tokenizer(tokenizer, "none", False)).encode([(text.encode(), True)])
        self.assertEqual(list(map(int, numbers.split())), list(tokens), "the tokens that training reads")
        return self.translate(tokenizer, "decode", numbers).decode()

    def test_round_trips_with_each_tokenizer(self):
        tokenizer = json_tokenizer(self.folder / "tokenizer.json", **BYTE_LEVEL)
        for text in TEXTS:
            self.assertEqual(self.round_trip("bytes", text), text)
            self.assertEqual(self.round_trip(tokenizer, text), text)
        # A SentencePiece model's normaliser makes blanks of newlines.
        model = sentencepiece_model(self.folder / "spiece.model")
        self.assertEqual(self.round_trip(model, "The cat sat on the mat."), "The cat sat on the mat.")

    def test_adds_nothing(self):
        self.assertEqual(self.translate("bytes", "encode", b"a\n"), b"97 10\n")
        self.assertEqual(self.translate("bytes", "encode", b""), b"\n")
        self.assertEqual(self.translate("bytes", "encode", b"\xef\xbb\xbfa\n"), b"97 10\n")
        self.assertEqual(self.translate("bytes", "decode", b""), b"")

    # A model may have more tokens than its tokenizer.
    def test_replaces_unknown_token(self):
        tokenizer = json_tokenizer(self.folder / "tokenizer.json", **BYTE_LEVEL)
        numbers = self.translate(tokenizer, "encode", b"cat")
        self.assertEqual(self.translate(tokenizer, "decode", numbers + b" 5000 5001 " + numbers).decode(), "cat\ufffd\ufffdcat")

    def test_names_fault_and_ends_with_2(self):
        self.assertIn("byte 1 is not UTF-8", self.translate("bytes", "encode", b"a\xff", code=2))
        for word in (b"-1", b"1.5", b"x", b"1,2", b"\xff", b"9" * 5000):
            self.assertIn("is no token", self.translate("bytes", "decode", b"7 " + word, code=2))
        split = {"type": "Split", "pattern": {"Regex": "(x+x+)+y"}, "behavior": "Isolated", "invert": False}
        tokenizer = json_tokenizer(self.folder / "tokenizer.json", pre_tokenizer=split)
        self.assertIn(f"the tokenizer {tokenizer} fails at standard input", self.translate(tokenizer, "encode", b"x" * 60, code=2))
        self.assertIn("there is no such file", self.translate(self.folder / "absent.json", "encode", b"a", code=2))
        self.assertIn("invalid choice", self.translate("bytes", "translate", b"a", code=2))


if __name__ == "__main__":
    unittest.main()
