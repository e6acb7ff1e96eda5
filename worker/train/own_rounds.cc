#include "worker/train/own_rounds.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace distro::worker {
namespace {

struct Words {
  absl::string_view what;
  absl::string_view remedy;
};

// By OwnPart.
constexpr Words kWords[kOwnParts] = {
    {"", ""},
    {"ended before its steps were over",
     "this machine is too slow for the run's rounds: give it a GPU or more --threads, or ask the "
     "operator for a round_window, with which slow machines take fewer steps"},
    {"ended before its upload was over",
     "this link is too slow for the run's rounds: distroctl bench-link measures it; "
     "give it a faster one, or ask the operator for a longer round_deadline"},
    {"not finite",
     "its losses or gradients are not finite: check its data and the run's learning rate"},
    {"on probation", "wait: its updates count after some good updates"},
    {"without it in the record",
     "the aggregator does not count it as present: distroctl workers says why"},
    {"of another process of its name", "give each process a --name of its own"},
};

}  // namespace

bool OwnRounds::Add(OwnPart part) {
  parts_.push_back(part);
  if (parts_.size() > kWindow) parts_.pop_front();
  if (part == OwnPart::kCounted) {
    in_a_row_ = 0;
    next_told_ = kTold;
    return false;
  }
  if (++in_a_row_ < next_told_) return false;
  next_told_ *= 2;
  return true;
}

std::array<int, kOwnParts> OwnRounds::Counts() const {
  std::array<int, kOwnParts> counts = {};
  for (const OwnPart part : parts_) ++counts[static_cast<int>(part)];
  return counts;
}

bool OwnRounds::MostCount() const {
  return 2 * std::ranges::count(parts_, OwnPart::kCounted) >= static_cast<int64_t>(parts_.size());
}

std::string OwnRounds::What() const {
  if (MostCount()) return "";
  const std::array<int, kOwnParts> counts = Counts();
  std::vector<std::string> reasons;
  for (int i = 1; i < kOwnParts; ++i) {
    if (counts[i] > 0) reasons.push_back(absl::StrCat(counts[i], " ", kWords[i].what));
  }
  return absl::StrCat(parts_.size() - static_cast<size_t>(counts[0]), " of its last ",
                      parts_.size(), " rounds did not count: ", absl::StrJoin(reasons, ", "));
}

std::string OwnRounds::Remedy() const {
  if (MostCount()) return "";
  const std::array<int, kOwnParts> counts = Counts();
  const auto most = std::max_element(counts.begin() + 1, counts.end()) - counts.begin();
  return std::string(kWords[most].remedy);
}

}  // namespace distro::worker
