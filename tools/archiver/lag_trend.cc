#include "tools/archiver/lag_trend.h"

#include "absl/strings/str_cat.h"

namespace distro::tools {

LagJudgement LagTrend::Add(absl::Duration now, uint64_t lag) {
  readings_.push_back({now, lag});
  while (readings_.size() > 1 && readings_[1].at <= now - kWindow) readings_.pop_front();
  const uint64_t before = readings_.front().lag;
  const absl::Duration since = now - readings_.front().at;
  if (lag <= kFewRounds) return {Pace::kKeepsUp, absl::StrCat(lag, " rounds behind")};
  const std::string change = absl::StrCat(lag, " rounds behind; ", before, " rounds ",
                                          absl::FormatDuration(since), " ago");
  if (lag > before && since >= kWindow) return {Pace::kFallsBehind, change};
  return {Pace::kCatchesUp, change};
}

}  // namespace distro::tools
