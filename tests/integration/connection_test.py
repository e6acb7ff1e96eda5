"""Programs that cannot reach their aggregator: worker, archiver and distroctl end with the code of the fault, and with a
message that says what to do. The words are held by tests/server/service/connection_faults_test.cc."""
import json
import re

import processes
from processes import Aggregator, ProcessTest


class ConnectionTest(ProcessTest):
    def setUp(self):
        super().setUp()
        self.tls = self.workspace.folder / "tls"
        self.ended = 0
        self.workspace.distroctl("certs", "--out", self.tls, "--host", "127.0.0.1", "--worker", "w1")
        self.own = ("--cert", self.tls / "worker-w1.pem", "--key", self.tls / "worker-w1-key.pem")
        self.workspace.distroctl("certs", "--out", self.workspace.folder / "other", "--host", "127.0.0.1")
        self.ca = ("--ca", self.tls / "ca.pem")

    def start_tls_aggregator(self):
        space = self.workspace
        port_file = space.folder / "tls.ports"
        command = [self.binaries.aggregator, "--data_dir", space.folder / "tls-data", "--listen", "127.0.0.1:0", "--http",
                   "127.0.0.1:0", "--port_file", port_file, *self.ca, "--cert", self.tls / "server.pem", "--key",
                   self.tls / "server-key.pem"]
        space.processes.append(Aggregator("tls-aggregator", command, space.folder, port_file))
        return space.processes[-1].await_ports()

    def expect(self, address, flags, words, code, of_distroctl=None, passes=False):
        """All three programs end with this code, and these words in their last message. `passes`: worker and archiver would wait, but
        for the flag that forbids it."""
        space, self.ended = self.workspace, self.ended + 1
        waits = ["--connect_timeout=1ms"] if passes else []
        of_distroctl = of_distroctl or code
        worker = space.start(f"worker-{self.ended}", [
            self.binaries.worker, "--aggregator", address, "--data", space.text, "--name", "w1", *waits, *flags])
        archiver = space.start(f"archiver-{self.ended}", [
            self.binaries.archiver, "--aggregator", address, "--data_dir", space.folder / f"archive-{self.ended}",
            *waits, *flags])
        for process in (worker, archiver):
            self.assertEqual(process.exit_code(), code, process.log())
            self.assertRegex(process.log().splitlines()[-1], rf"ended exit_code={code} .*{re.escape(words)}")
        self.assertIn(words, space.distroctl("run", "show", address, *flags, code=of_distroctl))
        table = space.distroctl("check-connection", address, *flags, code=of_distroctl)
        self.assertIn(words, table)
        return table

    def test_names_faults_with_tls(self):
        aggregator = self.start_tls_aggregator()
        self.expect(aggregator.grpc, ["--insecure"], "the server speaks TLS", 13)
        self.expect(aggregator.grpc, self.own, "which this system does not know", 15)
        self.expect(aggregator.grpc, [*self.own, "--ca", self.workspace.folder / "other" / "ca.pem"],
                    "holds another CA of this name", 15)
        self.expect(aggregator.grpc, [*self.own, *self.ca, "--server_name", "aggregator.example"],
                    "not for aggregator.example", 16)
        stranger = ["--cert", self.workspace.folder / "other" / "admin.pem", "--key",
                    self.workspace.folder / "other" / "admin-key.pem"]
        self.expect(aggregator.grpc, [*stranger, *self.ca], "the server refuses the certificate", 8, of_distroctl=3)
        shown = json.loads(self.workspace.distroctl("check-connection", aggregator.grpc, *self.own, *self.ca,
                                                    "--output", "json"))
        self.assertTrue(shown["ok"])
        table = self.workspace.distroctl("check-connection", aggregator.grpc, *self.ca)  # no credential is needed
        self.assertRegex(table, r"health +ok .*SERVING")
        self.assertEqual([step["step"] for step in shown["steps"]], ["resolve", "connect", "tls", "http2", "health"])
        self.assertEqual(shown["certificate"]["names"], ["127.0.0.1"])
        self.assertEqual((shown["alpn"], shown["health"]), ("h2", "SERVING"))

    def test_names_faults_in_plaintext(self):
        aggregator = self.workspace.start_aggregator()
        self.expect(aggregator.grpc, [*self.own, *self.ca], "the server speaks plaintext", 13)
        table = self.expect(aggregator.http(), ["--insecure"], "a web server answers (HTTP/1)", 14)
        self.assertRegex(table, r"connect +ok")
        self.expect(aggregator.http(), [*self.own, *self.ca], "a web server answers (HTTP/1)", 14)
        self.assertRegex(self.workspace.distroctl("check-connection", aggregator.grpc, "--insecure"), r"health +ok .*SERVING")

    def test_needs_aggregator(self):
        self.expect(self.workspace.hold_address(), ["--insecure"], "connection refused", 12, of_distroctl=6, passes=True)
        self.expect("aggregator.invalid:7700", ["--insecure"], "does not resolve", 11, of_distroctl=6, passes=True)

    def test_waits_for_late_aggregator(self):
        space = self.workspace
        address = space.hold_address()
        worker = space.start_worker("w1", address)
        archiver = space.start_archiver(address)
        for process in (worker, archiver):
            process.find(r"waiting for the aggregator .*connection refused")
        space.start_aggregator("--run", space.write_run(rounds=6, start_workers=1), "--model", space.init_model(),
                               listen=address)
        for process in (worker, archiver):
            self.assertEqual(process.exit_code(), 0)


if __name__ == "__main__":
    processes.main()
