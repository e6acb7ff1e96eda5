#!/usr/bin/env python3
"""PyTorch's gloo: every worker gathers every worker's update, as bytes of the size that DisTrO uploads. No server, nothing combined."""
import peer

peer.enter_environment(*peer.PYTORCH)
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import gloo_ranks  # noqa: E402


def main():
    options = peer.parse_arguments(__doc__)

    def make_round(workers):
        update = torch.zeros(options.up_bytes, dtype=torch.uint8)
        gathered = [torch.empty_like(update) for _ in range(workers)]
        return lambda: dist.all_gather(gathered, update)
    seconds, cpu = gloo_ranks.time_rounds(options.workers, options.rounds, make_round)
    passed_on = (options.workers - 1) * options.up_bytes  # around a ring: every update but one's own arrives, and all but one leave again
    peer.report(passed_on, passed_on, seconds, cpu)


if __name__ == "__main__":
    main()
