#!/usr/bin/env python3
"""The exchange of published DeMo: for every tensor, positions as int64 and amplitudes as float32 are gathered from every worker, over gloo.
For the report's 1.2 B layout with K = 4; it ignores --up_bytes, because its format determines its bytes. No transforms, no optimizer."""
import peer

peer.enter_environment(*peer.PYTORCH)
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import gloo_ranks  # noqa: E402

KEPT = 4
# Blocks of 64 x 64 of each tensor: embedding and head, the last norm, and of 16 layers four attention, three feed-forward matrices, two norms.
BLOCKS = [16000, 16000, 1] + 16 * [*4 * [1024], *3 * [4096], 1, 1]


def make_round(workers):
    updates = [(torch.zeros(blocks, KEPT, dtype=torch.int64), torch.zeros(blocks, KEPT)) for blocks in BLOCKS]

    def one_round():
        for update in updates:
            gathered = [[torch.empty_like(part) for _ in range(workers)] for part in update]
            handles = [dist.all_gather(into, part, async_op=True) for into, part in zip(gathered, update)]
            for handle in handles:
                handle.wait()
    return one_round


def main():
    options = peer.parse_arguments(__doc__)
    seconds, cpu = gloo_ranks.time_rounds(options.workers, options.rounds, make_round)
    passed_on = (options.workers - 1) * sum(BLOCKS) * KEPT * (8 + 4)  # around a ring, as in gloo_all_gather.py
    peer.report(passed_on, passed_on, seconds, cpu)


if __name__ == "__main__":
    main()
