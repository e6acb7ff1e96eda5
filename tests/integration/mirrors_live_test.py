"""Results and snapshots from mirrors: stock caches in front of the aggregator, as helm/ and docker/ configure them, and mirrors that
fail or lie."""
import http.server
import os
import pathlib
import shutil
import ssl
import threading
import unittest
import unittest.mock
import urllib.error
import urllib.request

import processes
from processes import ProcessTest, answers, hold_port, until

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROUNDS = 12


class MirrorTest(ProcessTest):
    def setUp(self):
        super().setUp()
        self.objects = self.workspace.hold_address()

    def start_run(self, *mirrors, **overrides):
        flags = ["--objects", self.objects, *(["--mirrors", ",".join(mirrors)] if mirrors else [])]
        return self.workspace.create_run(*flags, rounds=ROUNDS, start_workers=3, **overrides)

    def train(self, aggregator, *flags):
        """Three workers up to the run's end; their summaries."""
        workers = [self.workspace.start_worker(f"w{i}", aggregator.grpc, *flags) for i in range(3)]
        self.finish(workers)
        return [worker.summary() for worker in workers]

    def sent(self, aggregator, kind):
        return aggregator.metric("distro_aggregator_sent_bytes_total", kind=kind)

    def expect_one_copy(self, mirror):
        """Each worker has all bytes from the mirror, which had them of the aggregator once."""
        aggregator = self.start_run(mirror, method="signs", local_steps=None, kept_per_block=1000)
        summaries = self.train(aggregator)
        results = summaries[0]["received_payload_bytes"]
        snapshot = summaries[0]["mirror_bytes"] - results
        self.assertGreater(results, 0)
        self.assertGreater(snapshot, 100_000)
        for summary in summaries:
            self.assertEqual(summary["mirror_failures"], 0)
            self.assertEqual(summary["received_payload_bytes"], results)
            self.assertEqual(summary["mirror_bytes"], results + snapshot)
        # Of the streams there are only the frames that open and commit rounds, and name objects.
        sent = self.sent(aggregator, "result")
        self.assertGreaterEqual(sent, results)
        self.assertLess(sent, 1.5 * results)
        self.assertEqual(self.sent(aggregator, "snapshot"), snapshot)


@unittest.skipUnless(shutil.which("varnishd"), "varnish is not installed")
class VarnishTest(MirrorTest):
    def test_sends_one_copy(self):
        self.expect_one_copy(self.workspace.start_varnish(self.objects)[1])

    def test_goes_on_without_it(self):
        """It is killed in the middle of the run: the rest comes from the stream."""
        varnish, mirror = self.workspace.start_varnish(self.objects)
        aggregator = self.start_run(mirror, round_deadline="60s")
        workers = [self.workspace.start_worker(f"w{i}", aggregator.grpc) for i in range(3)]
        aggregator.await_round(4)
        varnish.kill()
        self.finish(workers)
        for worker in workers:
            summary = worker.summary()
            self.assertGreaterEqual(summary["mirror_failures"], 1)
            self.assertGreater(summary["received_payload_bytes"], 0)

    def test_refuses_what_its_cache_cannot_hold(self):
        """Such a snapshot, of more than 1 MB, comes from the aggregator at once."""
        self.workspace.model |= {"hidden_size": 384}
        aggregator = self.start_run(self.workspace.start_varnish(self.objects, cache="1M")[1])
        worker, *others = [self.workspace.start_worker(f"w{i}", aggregator.grpc) for i in range(3)]
        self.finish([worker, *others])
        self.assertRegex(worker.log(), "mirror failed .*/snapshots/[^ ]*: .*503")


@unittest.skipUnless(shutil.which("nginx"), "nginx is not installed")
class NginxTest(MirrorTest):
    def test_sends_one_copy(self):
        folder = self.workspace.folder / "nginx"
        (folder / "cache").mkdir(parents=True)
        address = self.workspace.hold_address()
        rules = (ROOT / "docker/nginx/objects.conf").read_text()
        for stock, ours in (("http://aggregator:7704", f"http://{self.objects}"), ("listen 80", f"listen {address}"),
                            ("/var/cache/nginx/objects", f"{folder}/cache")):
            self.assertIn(stock, rules)
            rules = rules.replace(stock, ours)
        (folder / "objects.conf").write_text(rules)
        places = "".join(f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (folder / "nginx.conf").write_text(
            f"daemon off; master_process off; pid {folder}/pid; error_log stderr;\n"
            f"events {{}}\nhttp {{ access_log off; {places} include {folder}/objects.conf; }}\n")
        self.workspace.start("nginx", ["nginx", "-p", folder, "-c", folder / "nginx.conf", "-e", "stderr"])
        until(lambda: answers(f"http://{address}/"), "nginx answers")
        self.expect_one_copy(f"http://{address}")


class Liar(http.server.BaseHTTPRequestHandler):
    """Changes what the aggregator serves."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.asked += 1
        try:
            with urllib.request.urlopen(f"http://{self.server.objects}{self.path}") as response:
                body = response.read()
        except urllib.error.HTTPError as error:
            return self.send_error(error.code)
        self.server.lie(self, body)

    def answer(self, body, length=None):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


def honest(handler, body):
    handler.answer(body)


def forged(handler, body):
    handler.answer(bytes([body[0] ^ 1]) + body[1:])


def cut(handler, body):
    handler.answer(body[:len(body) // 2], len(body))
    handler.close_connection = True


def longer(handler, body):
    handler.answer(body + b"x")


def endless(handler, body):
    handler.answer(body + bytes(1 << 20), 1 << 40)
    handler.close_connection = True


def old(handler, body):
    """Always the first object that it saw."""
    handler.server.first = getattr(handler.server, "first", body)
    handler.answer(handler.server.first if handler.server.asked > 1 else b"nothing yet")


def stalls(handler, body):
    handler.answer(body[:len(body) // 2], len(body))
    handler.server.ends.wait()


def missing(handler, body):
    handler.send_error(404)


def broken(handler, body):
    handler.wfile.write(b"\x16\x03\x01\x02\x00")
    handler.close_connection = True


class LyingMirrorTest(MirrorTest):
    def start_liar(self, lie, certificate=None):
        """`certificate`: its files, for HTTPS."""
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Liar)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        server.lie, server.objects, server.asked, server.ends = lie, self.objects, 0, threading.Event()
        server.daemon_threads = True
        server.handle_error = lambda *arguments: None  # clients that left
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()

        def stop():
            server.ends.set()
            server.shutdown()
            server.server_close()
            thread.join()
        self.addCleanup(stop)
        return server

    def expect_no_harm(self, lie):
        """The same parameters as without a mirror, whatever it gives."""
        server = self.start_liar(lie)
        aggregator = self.start_run("http://127.0.0.1:%d" % server.server_port)
        for summary in self.train(aggregator):
            self.assertGreaterEqual(summary["mirror_failures"], 1)
            self.assertEqual(summary["retries"], 0)
        self.assertGreaterEqual(server.asked, 3)

    def test_forged(self):
        self.expect_no_harm(forged)

    def test_cut(self):
        self.expect_no_harm(cut)

    def test_longer(self):
        self.expect_no_harm(longer)

    def test_endless(self):
        self.expect_no_harm(endless)

    def test_old(self):
        self.expect_no_harm(old)

    def test_stalls(self):
        self.expect_no_harm(stalls)

    def test_missing(self):
        self.expect_no_harm(missing)

    def test_broken(self):
        self.expect_no_harm(broken)

    def test_dead(self):
        holder = hold_port()
        self.addCleanup(holder.close)
        aggregator = self.start_run("http://%s:%d" % holder.getsockname())
        for summary in self.train(aggregator):
            self.assertGreaterEqual(summary["mirror_failures"], 1)

    def test_second_mirror_helps(self):
        """The first lies, the second is the aggregator's own port: no byte of a result comes from the stream."""
        server = self.start_liar(forged)
        aggregator = self.start_run("http://127.0.0.1:%d" % server.server_port, f"http://{self.objects}")
        for summary in self.train(aggregator):
            self.assertGreaterEqual(summary["mirror_bytes"], summary["received_payload_bytes"])

    def test_archiver_asks_it_too(self):
        server = self.start_liar(honest)
        aggregator = self.start_run("http://127.0.0.1:%d" % server.server_port)
        archiver = self.workspace.start_archiver(aggregator.grpc)
        self.train(aggregator, "--mirrors", "none")
        self.assertEqual(archiver.exit_code(), 0)
        self.assertGreater(server.asked, ROUNDS)
        self.assertNotIn("mirror failed", archiver.log())

    def test_archiver_asks_those_of_its_flag(self):
        liar, server = self.start_liar(forged), self.start_liar(honest)
        aggregator = self.start_run("http://127.0.0.1:%d" % liar.server_port)
        archiver = self.workspace.start_archiver(aggregator.grpc, "--mirrors", "http://127.0.0.1:%d" % server.server_port)
        self.train(aggregator, "--mirrors", "none")
        self.assertEqual(archiver.exit_code(), 0)
        self.assertEqual(liar.asked, 0)
        self.assertGreater(server.asked, ROUNDS)

    def start_https(self, host):
        """An honest mirror with a certificate for a host, and the file of its CA."""
        folder = self.workspace.folder / "tls"
        self.workspace.distroctl("certs", "--out", folder, "--host", host)
        server = self.start_liar(honest, (folder / "server.pem", folder / "server-key.pem"))
        return "https://127.0.0.1:%d" % server.server_port, folder / "ca.pem"

    def test_https(self):
        mirror, ca = self.start_https("127.0.0.1")
        aggregator = self.start_run(mirror)
        with unittest.mock.patch.dict(os.environ, SSL_CERT_FILE=str(ca)):
            summaries = self.train(aggregator)
        for summary in summaries:
            self.assertEqual(summary["mirror_failures"], 0)
            self.assertGreater(summary["mirror_bytes"], summary["received_payload_bytes"])

    def test_https_of_another_name_or_ca(self):
        mirror, ca = self.start_https("mirror.example")
        aggregator = self.start_run(mirror)
        with unittest.mock.patch.dict(os.environ, SSL_CERT_FILE=str(ca)):
            known = self.workspace.start_worker("w0", aggregator.grpc)
        others = [self.workspace.start_worker(f"w{i}", aggregator.grpc) for i in (1, 2)]
        self.finish([known, *others])
        for worker in (known, *others):
            self.assertEqual(worker.summary()["mirror_bytes"], 0)
            self.assertGreaterEqual(worker.summary()["mirror_failures"], 1)

    def test_none(self):
        """Workers and an archiver that want no mirror."""
        server = self.start_liar(forged)
        aggregator = self.start_run("http://127.0.0.1:%d" % server.server_port)
        archiver = self.workspace.start_archiver(aggregator.grpc, "--mirrors", "none")
        for summary in self.train(aggregator, "--mirrors", "none"):
            self.assertEqual((summary["mirror_bytes"], summary["mirror_failures"]), (0, 0))
        self.assertEqual(archiver.exit_code(), 0)
        self.assertEqual(server.asked, 0)


if __name__ == "__main__":
    processes.main()
