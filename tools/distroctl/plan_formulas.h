// What a run will cost: bytes and seconds from a model's sizes. Pure formulas; docs/tools.md,
// "plan", has them in words with their sources. Bits a second for links, decimal units. Memory is
// what workers plan with: worker/plan/memory_plan.h.
#pragma once

namespace distro::tools {

// Bytes of 16-bit gradients of all parameters: what data parallelism moves.
double GradientBytes(double parameters);

inline double TransferSeconds(double bytes, double bits_per_second) {
  return 8 * bytes / bits_per_second;
}

// What each of n peers receives a step when all send `bytes` to all: the report's All-Reduce, and
// its DisTrO without an aggregator.
double ReceivedFromAll(double bytes, int n);
// What each of n sends, and receives, in a ring All-Reduce of `bytes`; ZeRO-1 and -2 move the same.
double RingAllReduceBytes(double bytes, int n);
// ZeRO-3: parameters are gathered twice, gradients scattered once.
double Zero3Bytes(double bytes, int n);

// Bytes of a payload with `votes` of the 4096 coefficients in each of `blocks` blocks: log2 C(4096,
// votes) bits for where they are and one for each sign. A record codec's update has whole bits a
// block; see UpdateBytes for that.
double EntropyBytes(double blocks, int votes);
// A result that n workers made, each with k a block: lossless, with no two workers of one mind (the
// most there can be).
double LosslessResultBytes(double blocks, int n, int k);

// Share of time in which a pipeline of so many stages idles, with so many micro-batches a step.
double PipelineBubble(int stages, int micro_batches);

}  // namespace distro::tools
