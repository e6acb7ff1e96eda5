"""Every input gives the same documents, can be read on from every piece, and says what is wrong with it, and where."""

import os
import pathlib
import socket
import unittest

from distro_data import inputs, sources
from distro_data.errors import InputError
from distro_data.pieces import PIECE_BYTES, cut
from helpers import TEXTS, FolderTest

LONG = "a line of some length\n" * (2 * PIECE_BYTES // 22)
DOCUMENTS = [*TEXTS, LONG, *TEXTS]


def documents(pieces):
    found, text = [], b""
    for piece in pieces:
        text += piece.text
        if piece.ends:
            found.append(text.decode())
            text = b""
    assert not text, "the last document does not end"
    return found


class SourcesTest(FolderTest):
    def files(self, *paths, field="text", input_format="auto"):
        return inputs.open_inputs(paths, input_format, field)

    def of_rows(self, texts, field="text"):
        """The same rows in every format."""
        half = len(texts) // 2
        return {"jsonl": self.files(self.write_jsonl("a.jsonl", [{field: text, "id": 1} for text in texts]), field=field),
                "parquet": self.files(self.write_parquet("a.parquet", {"id": [1] * len(texts), field: texts}, row_group_size=3), field=field),
                "dataset": self.files(self.write_dataset("set", [{field: texts[:half]}, {field: texts[half:]}]), field=field)}

    def test_names_what_replaces_file(self):
        pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
        for name, data, message in (("a.txt", pointer, "is a Git LFS pointer"), ("a.parquet", pointer, "is a Git LFS pointer"),
                                    ("a.jsonl", b"\x1f\x8b\x08", "is compressed with gzip"),
                                    ("a.txt", "\ufeffa".encode("utf-16-le"), "is UTF-16"), ("a.jsonl", "\ufeffa".encode("utf-16-be"), "is UTF-16"),
                                    ("b.parquet", b"\n<!DOCTYPE html>", "is a web page")):
            path = self.write(name, data)
            with self.assertRaisesRegex(InputError, f"{path}: {message}"):
                self.files(path)
        self.files(self.write("page.txt", b"<!DOCTYPE html>"))  # a document

    def test_rows_are_documents_in_every_format(self):
        for name, files in self.of_rows(DOCUMENTS, field="content").items():
            with self.subTest(name):
                self.assertEqual([text for file in files for text in documents(file.pieces(sources.START))], DOCUMENTS)

    def test_cuts_text_file_as_row(self):
        [file] = self.files(self.write("a.txt", LONG))
        self.assertEqual([piece.text for piece in file.pieces(sources.START)], list(cut(LONG.encode())))
        self.assertEqual(documents(file.pieces(sources.START)), [LONG])

    def test_reading_goes_on_from_every_piece(self):
        whole = {"text": self.files(self.write("a.md", LONG)), **self.of_rows(DOCUMENTS)}
        for name, files in whole.items():
            for file in files:
                pieces = list(file.pieces(sources.START))
                for i, piece in enumerate(pieces):
                    with self.subTest(name, piece=i):
                        rest = [(p.text, p.ends, p.place) for p in file.pieces(piece.place)]
                        self.assertEqual(rest, [(p.text, p.ends, p.place) for p in pieces[i + 1:]])

    def test_counts_bytes_up_to_size(self):
        for files in ({"text": self.files(self.write("a.md", LONG)), **self.of_rows(DOCUMENTS)}).values():
            for file in files:
                done = [piece.done for piece in file.pieces(sources.START)]
                self.assertEqual(done, sorted(done))
                self.assertLessEqual(done[-1], file.size)

    def test_rows_without_text_are_documents_without_text(self):
        for files in self.of_rows(["a", "", None, "b"]).values():
            self.assertEqual([text for file in files for text in documents(file.pieces(sources.START))], ["a", "", "", "b"])
        [file] = self.files(self.write("empty.txt", ""))
        self.assertEqual(documents(file.pieces(sources.START)), [""])
        [file] = self.files(self.write("blank.jsonl", '\n{"text": "a"}\n\n  \n{"text": "b"}'))
        self.assertEqual(documents(file.pieces(sources.START)), ["a", "b"])

    def assert_refused(self, *words, paths, **options):
        with self.assertRaises(InputError) as caught:
            for file in self.files(*paths, **options):
                list(file.pieces(sources.START))
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_wrong_lines_are_named(self):
        good = '{"text": "a"}\n'
        for line, *words in [('{"text": "a"', "is not JSON", "one object"),
                             ('["a"]', "is not a JSON object"),
                             ('{"body": "a", "id": 1}', 'no field "text"', '"body", "id"', "--field"),
                             ('{"text": 5, "body": "a", "id": 1}', "is a number, not a string", 'with one that is: "body"'),
                             ('{"text": ["a"]}', "is a list, not a string", "a field of its own"),
                             ('{"text": "\\ud800"}', "surrogate"),
                             ("[" * 100000, "is not JSON"),
                             (b'{"text": "\xff"}', "byte 10 of the line: is not UTF-8", "iconv")]:
            path = self.write("a.jsonl", (good * 2).encode() + (line if isinstance(line, bytes) else line.encode()) + b"\n")
            self.assert_refused(f"{path}:3: ", *words, paths=[path])

    def test_names_endless_line(self):
        limit, sources.MAX_LINE_BYTES = sources.MAX_LINE_BYTES, 100
        self.addCleanup(setattr, sources, "MAX_LINE_BYTES", limit)
        path = self.write("a.jsonl", '{"text": "a"}\n' + '{"text": "' + "a" * 200)
        self.assert_refused(f"{path}:2: ", "longer than 100 bytes", paths=[path])

    def test_wrong_text_is_named_by_its_byte(self):
        path = self.write("a.txt", LONG.encode() + b"ab\xffcd")
        self.assert_refused(f"{path}: byte {len(LONG) + 2}: is not UTF-8", paths=[path])

    def test_wrong_columns_are_named(self):
        path = self.write_parquet("a.parquet", {"body": ["a"], "text": [1]})
        self.assert_refused(path, 'column "text" is of int64', paths=[path])
        self.assert_refused(path, 'no column "content"', '"body", "text"', "--field", paths=[path], field="content")
        self.assert_refused(path, "cannot be read", paths=[self.write("a.parquet", b"PAR1" + bytes(100))])
        import pyarrow
        damaged = pyarrow.array(["ab", "c"]).buffers()
        column = pyarrow.Array.from_buffers(pyarrow.string(), 2, [None, damaged[1], pyarrow.py_buffer(b"ab\xff")])
        path = self.write_parquet("b.parquet", {"text": column})
        self.assert_refused(f"{path}: row 1: byte 0", paths=[path])

    def test_columns_that_are_text_in_another_type_are_read(self):
        import pyarrow
        texts = ["alpha", None, "", "\u20ac"]
        strings = pyarrow.array(texts)
        columns = {"category": strings.dictionary_encode(), "category of views": pyarrow.array(texts, pyarrow.string_view()),
                   "large": strings.cast(pyarrow.large_string()), "binary": strings.cast(pyarrow.binary()),
                   "large binary": strings.cast(pyarrow.large_binary()), "binary view": strings.cast(pyarrow.binary_view()),
                   "json": pyarrow.array(texts, pyarrow.json_()), "large json": pyarrow.array(texts, pyarrow.json_(pyarrow.large_string()))}
        for name, column in columns.items():
            for path in (self.write_parquet(f"{name}.parquet", {"text": column}), self.write_dataset(name, [{"text": column}])):
                with self.subTest(path):
                    [file] = self.files(path)
                    self.assertEqual(documents(file.pieces(sources.START)), ["alpha", "", "", "\u20ac"])
        files = self.files(self.write_parquet("a.parquet", {"text": strings}), self.write_parquet("nulls.parquet", {"text": [None, None]}))
        self.assertEqual(len([piece for file in files for piece in file.pieces(sources.START)]), 6)

    def test_columns_that_are_no_text_are_named_with_those_that_are(self):
        import pyarrow
        messages = pyarrow.array([[{"role": "user", "content": "a"}]])
        path = self.write_parquet("a.parquet", {"text": messages, "body": ["a"], "kind": pyarrow.array(["x"]).dictionary_encode(), "id": [1]})
        self.assert_refused(path, "is of list<", "not of text", '--field with one that is: "body", "kind"', paths=[path])
        for column in (pyarrow.array([b"0" * 16], pyarrow.uuid()), pyarrow.array([b"ab"], pyarrow.binary(2)), pyarrow.array([1.5])):
            path = self.write_parquet("b.parquet", {"text": column})
            self.assert_refused(path, f"is of {column.type}", "a field of its own", paths=[path])
        path = self.write_parquet("c.parquet", {"text": [b"ab", b"\xff"]})
        self.assert_refused(f"{path}: row 1: byte 0", paths=[path])

    # Windows writes a byte order mark before a text; it is no part of it. The worker's text files: worker/data.
    def test_leaves_out_byte_order_mark(self):
        mark = "\ufeff"
        for name, text in (("a.txt", "A text.\n"), ("a.jsonl", '{"text": "A text.\\n"}\r\n'), ("b.jsonl", '\n{"text": "A text.\\n"}\n')):
            for before in ("", mark):
                [file] = self.files(self.write(name, before + text))
                pieces = list(file.pieces(sources.START))
                self.assertEqual(documents(pieces), ["A text.\n"])
                self.assertEqual(list(file.pieces(pieces[-1].place)), [])
        for name, found in (("only.txt", [""]), ("only.jsonl", [])):
            [file] = self.files(self.write(name, mark))
            self.assertEqual(documents(file.pieces(sources.START)), found)
        self.assertEqual(documents(self.files(self.write("in.txt", f"a{mark}b"))[0].pieces(sources.START)), [f"a{mark}b"])
        path = self.write("wrong.txt", f"{mark}ab".encode() + b"\xff")
        self.assert_refused(f"{path}: byte 5", paths=[path])

    def test_damaged_arrow_files_are_named(self):
        folder = self.write_dataset("set", [{"text": ["a", "b", "c"]}])
        path = os.path.join(folder, "data-00000-of-00001.arrow")
        whole = pathlib.Path(path).read_bytes()
        for size in (0, 10, len(whole) // 2):
            pathlib.Path(path).write_bytes(whole[:size])
            self.assert_refused(path, "cannot be read", paths=[folder])
        os.remove(path)
        self.assert_refused(path, "it is not there", paths=[folder])

    def test_folders_that_are_no_dataset_are_explained(self):
        splits = self.write("sets/dataset_dict.json", '{"splits": ["train", "test"]}').rpartition("/")[0]
        self.assert_refused("train, test", f"{splits}/train", paths=[splits])
        self.assert_refused("without state.json", paths=[self.write("files/a.txt", "a").rpartition("/")[0]])
        self.assert_refused("selection", paths=[self.write_dataset("chosen", [{"text": ["a"]}], _indices_data_files=[{"filename": "i"}])])
        for state in ("{", "[]", "{}", '{"_data_files": []}', '{"_data_files": [{"filename": "../a"}]}', '{"_data_files": 5}'):
            path = self.write("wrong/state.json", state)
            self.assert_refused(path, paths=[path.rpartition("/")[0]])

    def test_names_that_say_nothing_are_explained(self):
        path = self.write("corpus.dat", "a")
        self.assert_refused(path, "--input_format", paths=[path])
        self.assertEqual(documents(self.files(path, input_format="text")[0].pieces(sources.START)), ["a"])
        self.assert_refused("there is no such file", paths=["absent.txt"])
        for name in ("a.TXT", "a.Md", "A.POD"):
            self.assertEqual(documents(self.files(self.write(name, "a"))[0].pieces(sources.START)), ["a"])
        [file] = self.files(self.write_jsonl("a.JSONL", [{"text": "a"}]))
        self.assertEqual(documents(file.pieces(sources.START)), ["a"])
        [file] = self.files(self.write_parquet("a.Parquet", {"text": ["a"]}))
        self.assertEqual(documents(file.pieces(sources.START)), ["a"])
        self.assert_refused("is given twice", paths=[path, os.path.join(self.folder, ".", "corpus.dat")], input_format="text")


    def test_refuses_irregular_files(self):
        fifo, loop, server = self.folder / "a.txt", self.folder / "loop.txt", socket.socket(socket.AF_UNIX)
        os.mkfifo(fifo)
        loop.symlink_to(loop)
        self.addCleanup(server.close)
        server.bind(str(self.folder / "b.txt"))
        for path in (fifo, self.folder / "b.txt", "/dev/null"):
            self.assert_refused(f"{path}: is not a regular file", paths=[str(path)], input_format="text")
        self.assert_refused(f"{loop}: Too many levels of symbolic links", paths=[str(loop)])
        self.assert_refused("-: there is no such file", paths=["-"])


if __name__ == "__main__":
    unittest.main()
