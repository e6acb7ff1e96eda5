"""One worker on two machines: torchrun over a link of its own between namespaces of network and processes, beside a worker of one process."""
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "deploy"))
from examples import EXAMPLES, PYTHON  # which says where the next one is
import processes
import shaped_links
from nanogpt_test import NanogptTest

MASTER = ("--nnodes", "2", "--nproc_per_node", "2", "--master_addr", "10.77.1.1", "--master_port", "29500")  # of the namespace
UNSEEN = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")  # by the other's processes, whose memory it does not share


class HostsTest(NanogptTest):
    def setUp(self):
        try:
            self.hub = self.enterContext(shaped_links.Hub())
            self.link = self.hub.link(up=1e9, down=1e9)
        except shaped_links.Refused as reason:
            self.skipTest(f"this machine allows no network namespaces: {reason}")
        super().setUp()

    def start_hosts(self, aggregator):
        """The torchruns of both."""
        return [self.workspace.start(f"host-{rank}", [
            *prefix, "env", f"GLOO_SOCKET_IFNAME={device}", PYTHON, "-B", "-m", "torch.distributed.run", *MASTER, "--node_rank", rank, EXAMPLES / "sharded.py",
            "--aggregator", aggregator.grpc, "--insecure", "--model", self.initial, "--data", self.workspace.text, "--name", "hosts",
            "--out", self.workspace.folder / "hosts"]) for rank, (prefix, device) in enumerate((((), "hub1"), ((*self.link.prefix, *UNSEEN), "far1")))]

    def test_trains(self):
        aggregator = self.start()
        single = self.train("single", aggregator)
        first, second = self.start_hosts(aggregator)
        self.assert_equal_states([single, first])
        self.assertEqual(second.exit_code(), 0, second.log())

    def test_both_end_when_the_link_is_cut(self):
        aggregator = self.start_run(self.initial, rounds=100000, start_workers=1, min_workers=1)
        first, second = self.start_hosts(aggregator)
        processes.until(lambda: first.alive() and "round: loss" in first.out_path.read_text(), "a round is over")
        shaped_links.run("ip", "link", "set", "hub1", "down")
        for host, reason in ((first, "rank 2 of this worker has given no sign of life"),
                             (second, "the store of torch.distributed has not answered")):
            self.assertNotEqual(host.exit_code(90), 0)
            self.assertIn(reason, host.log())


if __name__ == "__main__":
    processes.main()
