#include "worker/fsdp/collective_checks.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace distro::worker {
namespace {

absl::Status CheckCuts(int ranks, absl::Span<const int64_t> cuts) {
  const bool right = static_cast<int>(cuts.size()) == ranks + 1 && cuts.front() == 0 &&
                     std::is_sorted(cuts.begin(), cuts.end());
  return right ? absl::OkStatus()
               : absl::InvalidArgumentError(
                     absl::StrCat("the cuts are not ", ranks + 1, " ascending numbers from 0"));
}

absl::Status CheckFlat(absl::string_view name, const at::Tensor& tensor, int64_t elements) {
  if (tensor.dim() != 1 || !tensor.is_contiguous() || tensor.numel() != elements) {
    return absl::InvalidArgumentError(absl::StrCat(name, " has ", tensor.numel(), " elements in ",
                                                   tensor.dim(), " dimensions; ", elements,
                                                   " contiguous ones in 1 are expected"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckAllGather(int rank, int ranks, absl::Span<const int64_t> cuts,
                            const at::Tensor& shard, const at::Tensor& whole) {
  DISTRO_RETURN_IF_ERROR(CheckCuts(ranks, cuts));
  DISTRO_RETURN_IF_ERROR(CheckFlat("the shard", shard, cuts[rank + 1] - cuts[rank]));
  DISTRO_RETURN_IF_ERROR(CheckFlat("the whole", whole, cuts.back()));
  if (shard.scalar_type() != whole.scalar_type()) {
    return absl::InvalidArgumentError("shard and whole have different types");
  }
  return absl::OkStatus();
}

absl::Status CheckReduceScatter(int rank, int ranks, absl::Span<const int64_t> cuts,
                                const at::Tensor& part, at::ScalarType part_type,
                                const at::Tensor& sum) {
  DISTRO_RETURN_IF_ERROR(CheckCuts(ranks, cuts));
  DISTRO_RETURN_IF_ERROR(CheckFlat("the sum", sum, cuts[rank + 1] - cuts[rank]));
  if (sum.scalar_type() != at::kFloat) return absl::InvalidArgumentError("the sum is not f32");
  if (part_type != at::kFloat && part_type != at::kBFloat16) {
    return absl::InvalidArgumentError("parts are f32 or bf16");
  }
  if (!part.defined()) return absl::OkStatus();
  if (part.scalar_type() != part_type) {
    return absl::InvalidArgumentError("the part has another type than part_type");
  }
  return CheckFlat("the part", part, cuts.back());
}

absl::Status CheckAllToAll(int rank, int ranks, absl::Span<const int64_t> counts,
                           const at::Tensor& send, const at::Tensor& receive) {
  const bool right = static_cast<int64_t>(counts.size()) == int64_t{ranks} * ranks &&
                     std::all_of(counts.begin(), counts.end(), [](int64_t n) { return n >= 0; });
  if (!right) {
    return absl::InvalidArgumentError(
        absl::StrCat("the counts are not ", ranks, " x ", ranks, " numbers from 0"));
  }
  DISTRO_RETURN_IF_ERROR(CheckFlat("what is sent", send, SendCuts(rank, ranks, counts).back()));
  DISTRO_RETURN_IF_ERROR(
      CheckFlat("what is received", receive, ReceiveCuts(rank, ranks, counts).back()));
  if (send.scalar_type() == receive.scalar_type()) return absl::OkStatus();
  return absl::InvalidArgumentError("what is sent and what is received have different types");
}

std::vector<int64_t> SendCuts(int rank, int ranks, absl::Span<const int64_t> counts) {
  std::vector<int64_t> cuts = {0};
  for (int to = 0; to < ranks; ++to) cuts.push_back(cuts.back() + counts[rank * ranks + to]);
  return cuts;
}

std::vector<int64_t> ReceiveCuts(int rank, int ranks, absl::Span<const int64_t> counts) {
  std::vector<int64_t> cuts = {0};
  for (int from = 0; from < ranks; ++from)
    cuts.push_back(cuts.back() + counts[from * ranks + rank]);
  return cuts;
}

}  // namespace distro::worker
