"""For tests that need a GPU."""


def require_gpu(test, python):
    """Skips the test where PyTorch of that Python sees none."""
    asked = test.workspace.start("cuda", [python, "-c", "import sys, torch; sys.exit(0 if torch.cuda.is_available() else 3)"])
    if asked.exit_code() != 0:
        test.skipTest("torch.cuda.is_available() is False")
