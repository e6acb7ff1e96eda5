// Dropping the payloads of old rounds: round_log.h. Their headers go into packs: a pack is written
// as a whole to a temporary file, fsynced, and renamed over the file of its first round; the folder
// is fsynced, and only then the other records of its rounds are removed. So every round is in one
// file at least, and a round that is in two has the same header in both (docs/files.md).
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/log/record_format.h"
#include "server/log/round_log.h"

namespace distro::server {

// Ends where it begins if there is none.
RoundLog::Pack RoundLog::PackAt(uint64_t round) const {
  absl::MutexLock lock(&mu_);
  const auto pack = packs_.find(round);
  return pack == packs_.end() ? Pack{.end = round} : pack->second;
}

bool RoundLog::BeginsPack(uint64_t round) const {
  absl::MutexLock lock(&mu_);
  return packs_.contains(round);
}

absl::Status RoundLog::Prune(RoundId first_kept) {
  uint64_t first, end;
  {
    absl::MutexLock lock(&mu_);
    if (first_kept.value() >= begin_.value() + links_.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("prune: round ", first_kept.value(), " is not in the log"));
    }
    first_round_ = std::max(first_round_, first_kept);
    first = begin_.value();
    end = first_round_.value();
  }
  DISTRO_RETURN_IF_ERROR(RemovePacked());
  absl::Status status;  // the first error
  while (first < end && (status.ok() || absl::IsDataLoss(status))) {
    uint64_t next = first;
    const absl::Status packed = ExtendPack(first, end, &next);
    if (!packed.ok() && (status.ok() || !absl::IsDataLoss(packed))) status = packed;
    first = next;
  }
  return status;
}

// The headers for a pack from `first` on, up to `end`, the next pack, or one that cannot be read.
absl::Status RoundLog::ReadHeaders(uint64_t first, uint64_t end,
                                   std::vector<std::string>* headers) const {
  std::shared_ptr<const RecordReader> reader;
  uint64_t bytes = 0;
  for (uint64_t i = first; i < std::min(end, first + kPackRounds) && bytes < kPackHeaderBytes;
       ++i) {
    if (i > first && BeginsPack(i)) break;
    if (reader == nullptr || reader->end() <= RoundId(i)) {
      DISTRO_ASSIGN_OR_RETURN(reader, OpenUnchanged(RoundId(i)));
    }
    DISTRO_ASSIGN_OR_RETURN(std::string header, reader->HeaderOf(RoundId(i)));
    bytes += header.size();
    headers->push_back(std::move(header));
  }
  return absl::OkStatus();
}

// Makes the pack that begins with round `first` longer, up to `end` or until it is full or meets
// the next pack. `next` is the first round behind it, or behind one that cannot be read.
absl::Status RoundLog::ExtendPack(uint64_t first, uint64_t end, uint64_t* next) {
  const Pack pack = PackAt(first);
  *next = pack.end;
  if (pack.end >= end || pack.end - first >= kPackRounds || pack.bytes >= kPackHeaderBytes ||
      (pack.end > first && BeginsPack(pack.end)))
    return absl::OkStatus();
  std::vector<std::string> headers;
  const absl::Status status = ReadHeaders(first, end, &headers);
  const uint64_t packed_end = first + headers.size();
  *next = std::max(pack.end, packed_end + (status.ok() ? 0 : 1));
  if (packed_end <= pack.end) return status;
  DISTRO_RETURN_IF_ERROR(WritePack(first, headers));
  return status;
}

absl::Status RoundLog::WritePack(uint64_t first, const std::vector<std::string>& headers) {
  const RoundId round(first);
  const auto count = static_cast<uint32_t>(headers.size());
  DISTRO_ASSIGN_OR_RETURN(RecordWriter file,
                          NewFile(PathOf(round), RecordKind::kPack, round, count));
  for (uint32_t i = 0; i < count; ++i)
    DISTRO_RETURN_IF_ERROR(file.AddSegment(SegmentId(i), headers[i]));
  DISTRO_RETURN_IF_ERROR(file.Replace(/*header=*/""));
  DISTRO_RETURN_IF_ERROR(disk_->FsyncFolder(dir_));
  {
    absl::MutexLock lock(&mu_);
    Pack& pack = packs_.try_emplace(first, Pack{.end = first + 1}).first->second;
    for (uint64_t i = pack.end; i < first + count; ++i) packed_.push_back(PathOf(RoundId(i)));
    for (uint64_t i = first; i < first + count; ++i) {
      Link& link = LinkOf(RoundId(i));
      bytes_ -= link.bytes;
      link.bytes = 0;
      link.pruned = true;
    }
    bytes_ = bytes_ - pack.bytes + file.bytes();
    pack = {.end = first + count, .bytes = file.bytes()};
  }
  return RemovePacked();
}

absl::Status RoundLog::RemovePacked() {
  while (!packed_.empty()) {
    DISTRO_RETURN_IF_ERROR(RemoveIfThere(disk_, packed_.back()));
    packed_.pop_back();
  }
  return absl::OkStatus();
}

}  // namespace distro::server
