// The companions of a run: files of its initial folder, such as the tokenizer, that travel
// unchanged to every checkpoint (docs/checkpoints.md, "Companions"). Which names travel is fixed
// here: nobody can make a peer write any other file.
//
//   upload      ReadCompanions(folder), DescribeCompanions      distroctl, the aggregator's --model
//   download    CheckCompanionList, then each file by its SHA-256
//   checkpoint  WriteCompanions(folder, companions)
//
// Thread-safe; reading and writing block on the disk.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "distro/v1/snapshot.pb.h"
#include "google/protobuf/repeated_ptr_field.h"

namespace distro {

// Of all companions of a run together.
inline constexpr uint64_t kMaxCompanionBytes = 64 << 20;

struct Companion {
  std::string name;  // one of CompanionNames()
  std::string bytes;
};

// Distinct, ascending by name, none empty, together at most kMaxCompanionBytes.
using Companions = std::vector<Companion>;
using CompanionList = google::protobuf::RepeatedPtrField<v1::CompanionFile>;

// The names that travel, ascending.
absl::Span<const absl::string_view> CompanionNames();

// Those that `folder` has. InvalidArgument: one is empty, or they exceed kMaxCompanionBytes.
absl::StatusOr<Companions> ReadCompanions(const std::string& folder);

// Name, size and SHA-256 of each.
CompanionList DescribeCompanions(const Companions& companions);

// Of a list that a peer or a file gives, before a byte of it is reserved. InvalidArgument: names
// that do not travel, repeat or do not ascend, a size of 0, a SHA-256 without 32 bytes, or more
// than kMaxCompanionBytes together.
absl::Status CheckCompanionList(const CompanionList& list);

// Of a list that was checked.
uint64_t CompanionBytes(const CompanionList& list);

// The files of `list`, which was checked, one after the other in `bytes`. InvalidArgument: sizes or
// a SHA-256 are not those of the list; names the file.
absl::StatusOr<Companions> SplitCompanions(const CompanionList& list, absl::string_view bytes);

// The same from `folder`, where each is a file of its name. InvalidArgument also: one is missing.
absl::StatusOr<Companions> ReadListedCompanions(const CompanionList& list,
                                                const std::string& folder);

// Fetches one file of a list into `path`, verified.
using CompanionFetcher =
    std::function<absl::Status(const v1::CompanionFile& file, const std::string& path)>;

// Of a list that a peer gives: checks it, fetches into `folder`, which is created, what is not
// there with its SHA-256, and reads all. InvalidArgument: as CheckCompanionList. Otherwise the
// statuses of `fetch` and of the disk.
absl::StatusOr<Companions> CollectCompanions(const CompanionList& list, const std::string& folder,
                                             const CompanionFetcher& fetch);

// Each atomically, over one that is there. The folder exists.
absl::Status WriteCompanions(const std::string& folder, const Companions& companions);

// `pinned` is a run's tokenizer_sha256, or empty. InvalidArgument: there is a tokenizer among the
// companions, and none of them is the pinned one.
absl::Status CheckPinnedTokenizer(absl::string_view pinned, const Companions& companions);

}  // namespace distro
