#include "common/method/signs/votes.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/layout/matrix.h"

namespace distro {
namespace {

absl::Status Bad(int64_t block, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("votes: block ", block, ": ", what));
}

absl::Status ValidateOffsets(const Votes& votes, int64_t blocks) {
  if (votes.blocks() != blocks) {
    return absl::InvalidArgumentError(
        absl::StrCat("votes: ", votes.blocks(), " blocks, expected ", blocks));
  }
  if (votes.offsets.front() != 0 || votes.offsets.back() != votes.positions.size() ||
      votes.positions.size() != votes.values.size()) {
    return absl::InvalidArgumentError(absl::StrCat("votes: offsets from ", votes.offsets.front(),
                                                   " to ", votes.offsets.back(), " do not span ",
                                                   votes.positions.size(), " positions and ",
                                                   votes.values.size(), " values"));
  }
  for (int64_t block = 0; block < blocks; ++block) {
    if (votes.offsets[block] > votes.offsets[block + 1]) return Bad(block, "offsets descend");
  }
  return absl::OkStatus();
}

absl::Status ValidateBlock(const Votes& votes, int64_t block) {
  int next = 0;
  int64_t sum = 0;
  for (uint32_t i = votes.offsets[block]; i < votes.offsets[block + 1]; ++i) {
    const int position = votes.positions[i];
    if (position < next || position >= kBlockElements) {
      return Bad(block, absl::StrCat("position ", position, " is outside ", next, "..4095"));
    }
    next = position + 1;
    if (votes.values[i] == 0)
      return Bad(block, absl::StrCat("position ", position, " has value 0"));
    sum += std::abs(int{votes.values[i]});
  }
  if (sum > kMaxVotesPerBlock) {
    return Bad(block, absl::StrCat("sum of |V| is ", sum, ", at most ", kMaxVotesPerBlock));
  }
  return absl::OkStatus();
}

}  // namespace

Votes Concatenate(std::vector<Votes> parts) {
  if (parts.size() == 1) return std::move(parts.front());
  size_t blocks = 0, entries = 0;
  for (const Votes& part : parts) {
    blocks += part.blocks();
    entries += part.positions.size();
  }
  Votes all;
  all.offsets.reserve(blocks + 1);
  all.positions.reserve(entries);
  all.values.reserve(entries);
  for (const Votes& part : parts) {
    const uint32_t first = all.offsets.back();
    for (size_t block = 1; block < part.offsets.size(); ++block)
      all.offsets.push_back(first + part.offsets[block]);
    all.positions.insert(all.positions.end(), part.positions.begin(), part.positions.end());
    all.values.insert(all.values.end(), part.values.begin(), part.values.end());
  }
  return all;
}

absl::Status ValidateVotes(const Votes& votes, int64_t blocks) {
  if (votes.offsets.empty()) return absl::InvalidArgumentError("votes: no offsets");
  DISTRO_RETURN_IF_ERROR(ValidateOffsets(votes, blocks));
  for (int64_t block = 0; block < blocks; ++block) {
    DISTRO_RETURN_IF_ERROR(ValidateBlock(votes, block));
  }
  return absl::OkStatus();
}

}  // namespace distro
