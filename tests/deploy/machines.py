"""Machines of a test: each has a network (shaped_links.py), names of its own for addresses, and a /srv of its own, without a trace
on the machine that the test runs on."""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
import processes  # noqa: E402

MOUNTS = 'mount --bind "$0" /etc/hosts && mount --bind "$1" /srv && shift && exec "$@"'


class Machine:
    """`names`: {name: address}; `prefix`: in front of commands, for its network; `variables`: of its commands' environment."""

    def __init__(self, name, folder, names, prefix=(), **variables):
        self.folder, self.srv = folder, folder / f"{name}.srv"
        self.srv.mkdir()
        hosts = folder / f"{name}.hosts"
        hosts.write_text("".join(f"{address} {one}\n" for one, address in {"localhost": "127.0.0.1", **names}.items()))
        given = [f"{key}={value}" for key, value in {"TMPDIR": folder, **variables}.items()]
        self.prefix = [*map(str, prefix), "unshare", "--mount", "sh", "-c", MOUNTS, str(hosts), str(self.srv), "env", *given]

    def bash(self, commands, cwd="/", ends_well=True):
        """What the commands printed."""
        done = subprocess.run([*self.prefix, "bash", "-euo" if ends_well else "-uo", "pipefail", "-c", f"cd {cwd}\n{commands}"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=processes.LIMIT_SECONDS)
        assert not ends_well or done.returncode == 0, f"{commands}\n{done.stdout}{done.stderr}"
        return done.stdout

    def start(self, name, command, cwd="/"):
        """The process of one command; its log is `folder`/`name`.log."""
        return processes.Process(name, [*self.prefix, "bash", "-c", f"cd {cwd}\nexec {command.strip()}"], self.folder)

    def may_be(self):
        """Raises AssertionError or OSError where the system does not allow it."""
        self.bash("true")


def with_programs(folder):
    """The search path of a machine that has the programs of a folder."""
    return f"{folder}:{os.environ['PATH']}"
