"""The package's sources hold to mypy --strict and to ruff, as its pyproject.toml says."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

FOLDER = sys.argv.pop()


class SourcesTest(unittest.TestCase):
    def check(self, module, *arguments):
        with tempfile.TemporaryDirectory() as cache:
            done = subprocess.run([sys.executable, "-m", module, *arguments, "--cache-dir", cache, str(FOLDER)], cwd=FOLDER,
                                  capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_types(self):
        self.check("mypy", "--strict")

    def test_ruff(self):
        self.check("ruff", "check")

    def test_there_are_sources(self):
        self.assertTrue((pathlib.Path(FOLDER) / "distro_train" / "__init__.py").exists())


if __name__ == "__main__":
    unittest.main()
