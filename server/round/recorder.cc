#include "server/round/recorder.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/log/disk.h"

namespace distro::server {

void Recorder::Clear() {
  record_.reset();
  std::ranges::fill(results_, nullptr);
  order_.clear();
  header_.clear();
}

absl::Status Recorder::Add(SegmentId segment, SharedBytes result) {
  const bool first = order_.empty();
  SharedBytes& kept = results_[segment.value()] = std::move(result);
  order_.push_back(segment);
  if (!record_) return first ? WriteSegments() : absl::OkStatus();
  absl::Status status = record_->AddSegment(segment, *kept);
  if (!status.ok()) record_.reset();
  return status;
}

// Starts the record and writes the available results.
absl::Status Recorder::WriteSegments() {
  DISTRO_ASSIGN_OR_RETURN(RecordWriter record, round_log_->Begin(round_));
  for (const SegmentId segment : order_)
    DISTRO_RETURN_IF_ERROR(record.AddSegment(segment, *results_[segment.value()]));
  record_.emplace(std::move(record));
  return absl::OkStatus();
}

absl::Status Recorder::Commit() {
  if (!record_) DISTRO_RETURN_IF_ERROR(WriteSegments());
  RecordWriter record = *std::move(record_);  // used once
  record_.reset();
  const absl::Status status = round_log_->Commit(std::move(record), header_);
  if (!absl::IsInvalidArgument(status)) return status;
  return absl::InternalError(absl::StrCat("a round that cannot be stored: ", status.message()));
}

void DiskTrouble::Failed(RoundId head, const absl::Status& error) {
  const std::optional<DiskOperation> operation = FailedDiskOperation(error);
  observer_->OnLogError(operation ? DiskOperationName(*operation) : "other");
  std::string text = DiskErrorInShort(error);
  if (error_ == text) return;
  error_ = std::move(text);
  log_->Error("log not written: will try again", {{"round", head.value()}, {"error", error}});
}

void DiskTrouble::Wrote(RoundId head) {
  if (error_.empty()) return;
  error_.clear();
  log_->Info("log written again", {{"round", head.value()}});
}

}  // namespace distro::server
