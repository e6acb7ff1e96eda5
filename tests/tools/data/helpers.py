"""Small tokenizers and inputs, a folder for each test, and distro-data as a process."""

import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

WORKER = os.path.join(os.environ.get("DISTRO_BIN", ""), "distro-worker")
TEXTS = ["The cat sat on the mat.\n", "Gr\u00fc\u00dfe \u20ac \U0001f600!\n", "x", "two\nlines of the cat\n"]


class FolderTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, data):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return str(path)

    def write_jsonl(self, name, rows):
        return self.write(name, "".join(json.dumps(row) + "\n" for row in rows))

    def write_parquet(self, name, columns, **options):
        import pyarrow
        import pyarrow.parquet
        path = str(self.folder / name)
        pyarrow.parquet.write_table(pyarrow.table(columns), path, **options)
        return path

    def write_dataset(self, name, files, **state):
        """What save_to_disk writes: Arrow streams, named by state.json."""
        import pyarrow
        folder = self.folder / name
        folder.mkdir()
        names = [f"data-{i:05}-of-{len(files):05}.arrow" for i in range(len(files))]
        for file, columns in zip(names, files):
            table = pyarrow.table(columns)
            with pyarrow.OSFile(str(folder / file), "wb") as out, pyarrow.ipc.new_stream(out, table.schema) as stream:
                for batch in table.to_batches(max_chunksize=2):
                    stream.write_batch(batch)
        (folder / "dataset_info.json").write_text("{}")
        (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": file} for file in names], **state}))
        return str(folder)

    def run_data(self, *arguments, code=0):
        done = run_data(*arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr


def run_data(*arguments, **options):
    return subprocess.run([sys.executable, "-B", "-m", "distro_data", *map(str, arguments)], capture_output=True, text=True, **options)


def json_tokenizer(path, special=("<|endoftext|>",), **changes):
    """A byte-level BPE of 300 tokens at most, as GPT-2's is."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=list(special), show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(TEXTS * 10, trainer)
    value = {**json.loads(tokenizer.to_str()), **changes}
    pathlib.Path(path).write_text(json.dumps(value))
    return str(path)


def sentencepiece_model(path, **options):
    import sentencepiece
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(TEXTS * 10), model_writer=model, vocab_size=300, model_type="bpe",
                                             byte_fallback=True, minloglevel=2, hard_vocab_limit=False, **options)
    pathlib.Path(path).write_bytes(model.getvalue())
    return str(path)


def contents(folder):
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}
