#include "worker/model/batch_maker.h"

#include <algorithm>

#include "worker/model/units.h"

namespace distro::worker {
namespace {

int64_t LengthOf(const TokenBatch& tokens) {
  return static_cast<int64_t>(tokens.tokens.size()) / tokens.sequences;
}

}  // namespace

Batch BatchMaker::Labelled(const TokenBatch& tokens) {
  const at::Tensor all = OnDevice(tokens, {.sequences = place_.padded_to.sequences});
  const int64_t positions = all.size(1) - 1;
  return {.tokens = all.narrow(1, 0, positions),
          .labels = all.narrow(1, 1, positions).narrow(0, 0, tokens.sequences),
          .tables = Tables(positions)};
}

Batch BatchMaker::Unlabelled(const TokenBatch& tokens) {
  const at::Tensor all = OnDevice(tokens, {});
  return {.tokens = all, .labels = {}, .tables = Tables(all.size(1))};
}

Batch BatchMaker::Next(const TokenBatch& tokens) {
  const at::Tensor all = OnDevice(tokens, {.positions = place_.padded_to.positions});
  return {
      .tokens = all, .labels = {}, .tables = Tables(all.size(1)), .position = LengthOf(tokens) - 1};
}

// i64 [sequences, length], padded with zeros to at least `least`. Torch's host allocator gives
// pinned memory out again only after the device has read it.
at::Tensor BatchMaker::OnDevice(const TokenBatch& tokens, const BatchShape& least) const {
  const int64_t sequences = tokens.sequences, length = LengthOf(tokens);
  const at::Tensor given =
      at::from_blob(const_cast<int32_t*>(tokens.tokens.data()), {sequences, length}, at::kInt);
  const at::Tensor staged =
      at::zeros({std::max(sequences, least.sequences), std::max(length, least.positions)},
                given.options().pinned_memory(place_.pins_host_memory));
  staged.narrow(0, 0, sequences).narrow(1, 0, length).copy_(given);
  return staged.to(place_.device, /*non_blocking=*/true).to(at::kLong);
}

std::vector<at::Tensor> BatchMaker::Tables(int64_t positions) {
  if (tables_.empty() || tables_[0].size(0) < positions) {
    tables_ = MakeTables(*model_, static_cast<int>(positions));
    for (at::Tensor& table : tables_) table = table.to(place_.device, place_.type);
  }
  std::vector<at::Tensor> rows;
  for (const at::Tensor& table : tables_) rows.push_back(table.narrow(0, 0, positions));
  return rows;
}

}  // namespace distro::worker
