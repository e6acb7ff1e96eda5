#include "worker/model/batch_maker.h"

#include "worker/model/units.h"

namespace distro::worker {

Batch BatchMaker::Labelled(const TokenBatch& tokens) {
  const at::Tensor all = OnDevice(tokens);
  const int64_t positions = all.size(1) - 1;
  return {.tokens = all.narrow(1, 0, positions),
          .labels = all.narrow(1, 1, positions),
          .tables = Tables(positions)};
}

Batch BatchMaker::Unlabelled(const TokenBatch& tokens) {
  const at::Tensor all = OnDevice(tokens);
  return {.tokens = all, .labels = {}, .tables = Tables(all.size(1))};
}

// i64 [sequences, length]. Torch's host allocator gives pinned memory out again only after the
// device has read it.
at::Tensor BatchMaker::OnDevice(const TokenBatch& tokens) const {
  const int64_t length = static_cast<int64_t>(tokens.tokens.size()) / tokens.sequences;
  const at::Tensor given = at::from_blob(const_cast<int32_t*>(tokens.tokens.data()),
                                         {tokens.sequences, length}, at::kInt);
  at::Tensor staged =
      at::empty(given.sizes(), given.options().pinned_memory(place_.pins_host_memory));
  staged.copy_(given);
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
