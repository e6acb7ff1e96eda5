"""The package's sources hold to mypy --strict and to ruff, as its pyproject.toml says; the examples to ruff."""
import ast
import graphlib
import pathlib
import subprocess
import sys
import tempfile
import unittest

EXAMPLES = sys.argv.pop()
FOLDER = sys.argv.pop()


class SourcesTest(unittest.TestCase):
    def check(self, module, *arguments, folder=FOLDER):
        with tempfile.TemporaryDirectory() as cache:
            done = subprocess.run([sys.executable, "-m", module, *arguments, "--cache-dir", cache, folder], cwd=folder,
                                  capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_types(self):
        self.check("mypy", "--strict")

    def test_ruff(self):
        self.check("ruff", "check")
        self.check("ruff", "check", "--config", f"{FOLDER}/pyproject.toml", folder=EXAMPLES)

    def test_modules_import_each_other_in_one_order(self):
        """Imports in functions and for types count too."""
        imports = {}
        for path in pathlib.Path(FOLDER, "distro_train").glob("*.py"):
            own = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom) and node.level == 1]
            imports[path.stem] = {name for node in own for name in ([node.module] if node.module else [one.name for one in node.names])}
        self.assertIn("_run", imports["_optimizer"])
        graphlib.TopologicalSorter(imports).prepare()  # CycleError names the circle

    def test_finds_sources(self):
        self.assertTrue((pathlib.Path(FOLDER) / "distro_train" / "__init__.py").exists())
        self.assertTrue((pathlib.Path(EXAMPLES) / "nanogpt.py").exists())


if __name__ == "__main__":
    unittest.main()
