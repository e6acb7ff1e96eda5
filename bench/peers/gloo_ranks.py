"""W processes that gather from each other with PyTorch's gloo over loopback."""
import multiprocessing
import os
import tempfile
import time

import torch
import torch.distributed as dist


def _rank(rank, workers, rounds, store, make_round, results):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=workers)
    one_round = make_round(workers)
    one_round()
    dist.barrier()
    wall, cpu = time.monotonic(), time.process_time()
    for _ in range(rounds):
        one_round()
    dist.barrier()
    results.put(((time.monotonic() - wall) / rounds, (time.process_time() - cpu) / rounds))
    dist.destroy_process_group()


def time_rounds(workers, rounds, make_round):
    """(wall seconds, processor seconds of all ranks) of a round. make_round(workers) is called in each rank and returns the function of a round."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    fork = multiprocessing.get_context("fork")  # ranks share the pages of the libraries
    results = fork.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        ranks = [fork.Process(target=_rank, args=(rank, workers, rounds, f"{folder}/store", make_round, results)) for rank in range(workers)]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
    if any(rank.exitcode for rank in ranks):
        raise SystemExit("a rank failed")
    times = [results.get() for _ in ranks]
    return max(wall for wall, _ in times), sum(cpu for _, cpu in times)
