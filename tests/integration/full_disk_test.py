"""A real file system that fills up, and one that becomes read-only, during a run. The tmpfs is mounted in a namespace of the
aggregator's own, so that nothing is left behind; where that is not permitted the test is skipped and says so."""
import os
import pathlib
import subprocess

import processes
from processes import ProcessTest, until

ROUNDS = 400
NEEDED = {"rounds": ROUNDS, "start_workers": 2, "min_workers": 2}
MOUNT = 'mkdir -p "$0" && mount -t tmpfs -o size=8m tmpfs "$0" && exec "$@"'
INODES = 150
FEW_INODES = MOUNT.replace("size=8m", f"size=100m,nr_inodes={INODES}")


class FullDiskTest(ProcessTest):
    def setUp(self):
        super().setUp()
        try_it = subprocess.run(["unshare", "-rm", "sh", "-c", MOUNT, self.workspace.folder / "try", "true"], capture_output=True,
                                text=True)
        if try_it.returncode != 0:
            self.skipTest(f"a tmpfs cannot be mounted here: {try_it.stderr.strip()}")

    def fill(self, folder):
        with open(folder / "filler", "wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(bytes(1 << 12))
            except OSError:
                pass

    def use_all_inodes(self, folder):
        try:
            for i in range(INODES):
                (folder / f"filler{i}").touch()
        except OSError:
            pass

    def inside(self, aggregator, script):
        """Runs a script, with the data folder as $0, in the namespace of the aggregator."""
        subprocess.run(["nsenter", "-t", str(aggregator.child.pid), "-U", "-m", "--preserve-credentials", "sh", "-ec", script,
                        self.workspace.data_dir], check=True)

    def expect_told(self, aggregator, words):
        """The fault is named, and meanwhile no round is committed."""
        until(lambda: words in aggregator.get("/readyz?verbose")[1], f"/readyz says {words}")
        at = aggregator.round()
        errors = lambda: sum(aggregator.metric("distro_aggregator_log_errors_total", operation=operation) or 0
                             for operation in ("create", "write", "fsync", "link", "unlink", "fsync_folder"))
        before = errors()
        until(lambda: errors() >= before + 2, "it is tried again")
        self.assertEqual(aggregator.round(), at)
        self.assertIn(words, aggregator.log())
        return at

    def test_holds_run_until_there_is_room(self):
        space = self.workspace
        aggregator = space.start_aggregator("--run", space.write_run(**NEEDED), "--model", space.init_model(),
                                            prefix=("unshare", "-rm", "sh", "-c", MOUNT, space.data_dir))
        folder = pathlib.Path(f"/proc/{aggregator.child.pid}/root{space.data_dir}")
        workers = [space.start_worker(name, aggregator.grpc) for name in ("a", "b")]
        aggregator.await_round(10)

        self.fill(folder)
        at = self.expect_told(aggregator, "No space left on device")
        os.unlink(folder / "filler")
        aggregator.await_round(at + 5)

        # A second, read-only mount on top: what has open files cannot be made read-only itself. It is made so elsewhere, where the
        # aggregator opens none meanwhile; a bind mount inherits it.
        self.inside(aggregator, 'mkdir "$0.made" && mount --bind "$0" "$0.made" && mount -o remount,bind,ro "$0.made" &&'
                                ' mount --bind "$0.made" "$0"')
        at = self.expect_told(aggregator, "Read-only file system")
        self.inside(aggregator, 'umount --lazy "$0"')  # a record that is being read keeps it busy
        aggregator.await_round(at + 5)

        state = self.finish(workers)
        self.assertEqual(len(list((folder / "rounds").glob("0*.record"))), ROUNDS)
        other = processes.Workspace(self.binaries)
        self.addCleanup(other.close)
        undisturbed = other.create_run(**NEEDED)
        self.assertEqual(state, self.finish([other.start_worker(name, undisturbed.grpc) for name in ("a", "b")]))

    def test_lets_rounds_outnumber_inodes(self):
        space = self.workspace
        aggregator = space.start_aggregator("--run", space.write_run(**NEEDED), "--model", space.init_model(),
                                            prefix=("unshare", "-rm", "sh", "-c", FEW_INODES, space.data_dir))
        folder = pathlib.Path(f"/proc/{aggregator.child.pid}/root{space.data_dir}")
        workers = [space.start_worker(name, aggregator.grpc) for name in ("a", "b")]
        archiver = space.start_archiver(aggregator.grpc, "--snapshot_interval_rounds", "10")
        aggregator.await_round(30)

        self.use_all_inodes(folder)
        at = self.expect_told(aggregator, f"for another file, all {INODES} inodes of the file system are in use")
        for filler in folder.glob("filler*"):
            filler.unlink()
        aggregator.await_round(at + 5)

        self.finish(workers)
        self.assertEqual(archiver.exit_code(), 0)
        records = sorted((folder / "rounds").glob("0*.record"))
        self.assertLess(len(records), INODES / 2)
        self.assertEqual(records[0].read_bytes()[12], 4, "the first is a pack")
        self.assertEqual(aggregator.metric("distro_aggregator_log_files"), len(records) + 1)
        self.assertEqual(aggregator.metric("distro_aggregator_data_dir_size_files"), INODES)
        verified = space.distroctl("log", "verify", "--data_dir", folder)
        self.assertIn(f"rounds    {ROUNDS}, ", verified)


if __name__ == "__main__":
    processes.main()
