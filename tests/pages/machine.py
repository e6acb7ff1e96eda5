"""A bare root in which commands are typed: those that end, and those that go on in the background."""

import contextlib
import os
import re
import signal
import subprocess
import time

import bare_root

LIMIT = 60 * bare_root.MINUTES
CERTIFICATES = "/etc/pip-certificates.crt"  # this machine's, in the root
LOCALE = ("LANG", "LC_ALL", "LC_CTYPE", "LC_MESSAGES")


class Machine:
    """The root, with a network of its own for what listens: ports are those of the pages, and nobody else's."""

    def __init__(self, root):
        self.root = root
        self.running = {}  # log: process
        self.network = subprocess.Popen(["unshare", "--net", "sh", "-c", "ip link set lo up && exec sleep infinity"])

    def close(self):
        self.stop()
        self.network.kill()
        self.network.wait()

    def stop(self):
        """Ends what start() began."""
        for process in self.running.values():
            with contextlib.suppress(ProcessLookupError):  # it has ended, which await_line tells
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.running.values():
            process.wait(60)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        self.running.clear()

    def command(self, text, folder, internet):
        """`internet`: with the network of this machine, which apt-get and pip need, and its settings for them."""
        environment = {"HOME": "/root"}
        if internet:
            environment.update((name, os.environ[name]) for name in bare_root.PASSED_ON if name in os.environ)
            if "PIP_CERT" in environment:  # not at its own place, where the root installs certificates of its own
                self.root.bind(environment["PIP_CERT"], CERTIFICATES)
                environment["PIP_CERT"] = CERTIFICATES
        # ccache has what was compiled in this machine's locale.
        locale = "".join(f"export {name}={os.environ[name]}\n" if name in os.environ else f"unset {name}\n" for name in LOCALE)
        script = f"{locale}mkdir -p {folder} && cd {folder}\n{text}"
        inner = self.root.command("bash", "-euo", "pipefail", "-c", script, environment=environment)
        return inner if internet else ["nsenter", "--net", "--target", str(self.network.pid), *inner]

    def type(self, text, folder, internet=False):
        """Runs commands to their end; what they printed."""
        print(f"$ {text}", flush=True)
        with subprocess.Popen(self.command(text, folder, internet), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace") as process:
            said = []
            for line in process.stdout:
                print(line, end="", flush=True)
                said.append(line)
        assert process.returncode == 0, f"{text}\nended with {process.returncode}"
        return "".join(said)

    def start(self, name, text, folder):
        """Commands of which the last goes on; the file of what they print."""
        print(f"$ {text}   # {name}, goes on", flush=True)
        log = self.root.folder / "tmp" / f"{name}.log"
        with open(log, "wb") as out:
            self.running[log] = subprocess.Popen(self.command(text, folder, internet=False), stdin=subprocess.DEVNULL, stdout=out,
                                                 stderr=out, start_new_session=True)
        return log

    def await_line(self, log, pattern, limit=10 * bare_root.MINUTES):
        """Waits until a file has what matches, as long as everything that was started is there."""
        end = time.monotonic() + limit
        while not (found := re.search(pattern, log.read_text(errors="replace") if log.exists() else "")):
            for its_log, process in self.running.items():
                assert process.poll() is None, f"{its_log}: ended with {process.returncode}:\n{its_log.read_text(errors='replace')[-4000:]}"
            assert time.monotonic() < end, f"{log}: not within {limit} s: {pattern}"
            time.sleep(0.2)
        print(found[0], flush=True)
