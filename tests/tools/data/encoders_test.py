"""Tokens are those of the libraries, and what ends a document is said or asked for."""

import json
import os
import pathlib
import unittest

from distro_data.encoders import Encoder, open_tokenizer
from distro_data.errors import EncodeError, InputError
from helpers import TEXTS, FolderTest, json_tokenizer, sentencepiece_model


class EncodersTest(FolderTest):
    def encode(self, name, texts, end_token="none"):
        tokens, ends = Encoder(open_tokenizer(name, end_token, False)).encode([(text.encode(), True) for text in texts])
        return list(tokens), ends

    def assert_refused(self, *words, name, end_token="auto"):
        with self.assertRaises(InputError) as caught:
            open_tokenizer(str(name), end_token, False)
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_bytes_are_tokens(self):
        self.assertEqual(self.encode("bytes", ["a\u00e4", "b"]), ([97, 0xC3, 0xA4, 98], [3, 4]))
        self.assertEqual(open_tokenizer("bytes", "none", False).vocabulary_size, 256)

    def test_encodes_tokenizer_json_as_library(self):
        from tokenizers import Tokenizer
        path = json_tokenizer(self.folder / "tokenizer.json")
        expected = [Tokenizer.from_file(path).encode(text).ids for text in TEXTS]
        self.assertEqual(self.encode(path, TEXTS)[0], sum(expected, []))

    def test_neither_truncates_nor_pads(self):
        plain = json_tokenizer(self.folder / "plain.json")
        changed = json_tokenizer(
            self.folder / "changed.json",
            truncation={"max_length": 2, "stride": 0, "strategy": "LongestFirst", "direction": "Right"},
            padding={"strategy": {"Fixed": 64}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "x"},
            post_processor={"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}},
                            {"Sequence": {"id": "A", "type_id": 0}}], "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                            "special_tokens": {"<|endoftext|>": {"id": "<|endoftext|>", "ids": [0], "tokens": ["<|endoftext|>"]}}})
        self.assertEqual(self.encode(changed, TEXTS), self.encode(plain, TEXTS))

    # Else whoever writes the text could end documents in it, or open a turn of a chat.
    def test_encodes_special_token_in_text_as_text(self):
        path = json_tokenizer(self.folder / "tokenizer.json")
        self.assertNotIn(0, self.encode(path, ["a<|endoftext|>b"])[0])
        self.assertEqual(self.encode(path, ["a", "b"], "auto")[0].count(0), 2)

    def test_encodes_sentencepiece_as_library(self):
        import sentencepiece
        path = sentencepiece_model(self.folder / "spiece.model")
        processor = sentencepiece.SentencePieceProcessor(model_file=path)
        tokens, ends = self.encode(path, TEXTS, "auto")
        expected = [processor.encode(text) + [processor.eos_id()] for text in TEXTS]
        self.assertEqual(tokens, sum(expected, []))
        self.assertEqual(ends[0], len(expected[0]))

    def test_follows_width_of_vocabulary(self):
        path = json_tokenizer(self.folder / "tokenizer.json")
        self.assertEqual(open_tokenizer(path, "none", False).token_bytes, 2)
        value = json.loads(pathlib.Path(path).read_text())
        value["added_tokens"].append({"id": 70000, "content": "<far>", "single_word": False, "lstrip": False, "rstrip": False,
                                      "normalized": False, "special": True})
        value["model"]["vocab"]["<far>"] = 70000
        wide = open_tokenizer(self.write("wide.json", json.dumps(value)), "<far>", False)
        self.assertEqual((wide.vocabulary_size, wide.token_bytes), (70001, 4))
        self.assertEqual(list(Encoder(wide).encode([(b"", True)])[0]), [70000])

    def test_finds_or_asks_for_end_token(self):
        self.assertEqual(open_tokenizer("bytes", "auto", only_text=True).end_token, None)
        self.assertEqual(open_tokenizer("bytes", "auto", only_text=False).end_token, 10)
        self.assertEqual(open_tokenizer("bytes", "\t", False).end_token, 9)
        self.assert_refused("one byte", name="bytes", end_token="ab")
        several = json_tokenizer(self.folder / "several.json", ("<unk>", "<eos>", "</s>"))
        self.assert_refused("--end_token", "<unk> <eos> </s>", name=several)
        self.assert_refused("--end_token", "no token <none>", name=several, end_token="<none>")
        self.assertEqual(open_tokenizer(several, "</s>", False).end_token, 2)
        self.assert_refused("--end_token", "<unk>", name=json_tokenizer(self.folder / "one.json", ("<unk>",)))
        self.assertEqual(open_tokenizer(several, "none", False).end_token, None)
        without = sentencepiece_model(self.folder / "without.model", eos_id=-1)
        self.assert_refused("--end_token", name=without)
        self.assert_refused("no piece <no>", name=without, end_token="<no>")

    def test_reads_tokenizer_of_windows_once(self):
        path = json_tokenizer(self.folder / "tokenizer.json")
        marked = self.write("marked.JSON", b"\xef\xbb\xbf" + pathlib.Path(path).read_bytes())
        self.assertEqual(self.encode(marked, TEXTS), self.encode(path, TEXTS))
        tokenizer = open_tokenizer(path, "none", False)
        pathlib.Path(path).write_text("another")
        self.assertEqual(len(Encoder(tokenizer).encode([(b"abc", True)])[1]), 1)

    def test_names_text_at_which_library_panics(self):
        split = {"type": "Split", "pattern": {"Regex": "(x+x+)+y"}, "behavior": "Isolated", "invert": False}
        path = json_tokenizer(self.folder / "tokenizer.json", pre_tokenizer=split)
        with self.assertRaises(EncodeError) as caught:
            self.encode(path, ["a", "x" * 60, "b"])
        self.assertEqual(caught.exception.args[0], 1)
        self.assertIn("retry-limit", caught.exception.args[1])

    def test_names_what_is_no_tokenizer(self):
        os.mkfifo(self.folder / "fifo.json")
        self.assert_refused("is not a regular file", name=self.folder / "fifo.json")
        self.assert_refused("Git LFS", name=self.write("lfs.json", "version https://git-lfs.github.com/spec/v1\n"))
        self.assert_refused("UTF-16", name=self.write("wide.json", "{}".encode("utf-16")))
        self.assert_refused("no such file", "bytes", name="absent.json")
        self.assert_refused("is a folder", "tokenizer.json", name=self.folder)
        self.assert_refused("neither .json", name=self.write("a.txt", "a"))
        self.assert_refused("is not a tokenizer.json", name=self.write("a.json", "{}"))
        self.assert_refused("is not a SentencePiece model", name=self.write("a.model", "junk"))


if __name__ == "__main__":
    unittest.main()
