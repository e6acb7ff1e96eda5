// The companions of a run: files of its initial folder, such as the tokenizer, that every
// checkpoint contains unchanged (docs/checkpoints.md, "Companions"). Only the names in the list
// here are allowed, so a peer cannot make another write any other file.
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
#include "distro/v1/snapshot.pb.h"
#include "google/protobuf/repeated_ptr_field.h"

namespace distro {

// Limit for all companions of a run together.
inline constexpr uint64_t kMaxCompanionBytes = 64 << 20;

struct Companion {
  std::string name;  // one of docs/checkpoints.md, "Companions"
  std::string bytes;
};

// Distinct, ascending by name, none empty, together at most kMaxCompanionBytes.
using Companions = std::vector<Companion>;
using CompanionList = google::protobuf::RepeatedPtrField<v1::CompanionFile>;

// Reads the companions in `folder`. InvalidArgument: one is empty or something else (a Git LFS
// pointer, a web page: foreign_file.h), or they exceed kMaxCompanionBytes.
absl::StatusOr<Companions> ReadCompanions(const std::string& folder);

// Name, size and SHA-256 of each.
CompanionList DescribeCompanions(const Companions& companions);

// Checks a list from a peer or a file, before any memory is reserved for it. InvalidArgument: names
// that are not allowed, repeat or do not ascend, a size of 0, a SHA-256 without 32 bytes, or more
// than kMaxCompanionBytes together.
absl::Status CheckCompanionList(const CompanionList& list);

// The sum of the sizes. Requires a checked list.
uint64_t CompanionBytes(const CompanionList& list);

// Splits `bytes`, the files of `list` one after the other. Requires a checked list.
// InvalidArgument: the sizes or a SHA-256 differ from the list; names the file.
absl::StatusOr<Companions> SplitCompanions(const CompanionList& list, absl::string_view bytes);

// Reads the files of `list` from `folder`, by name. InvalidArgument: one is missing, or its SHA-256
// differs.
absl::StatusOr<Companions> ReadListedCompanions(const CompanionList& list,
                                                const std::string& folder);

// Downloads one file of a list to `path` and verifies it.
using CompanionFetcher =
    std::function<absl::Status(const v1::CompanionFile& file, const std::string& path)>;

// Checks a peer's list, creates `folder`, fetches the files that are not there with their SHA-256,
// and reads all. InvalidArgument: as CheckCompanionList. Otherwise the statuses of `fetch` and of
// the disk.
absl::StatusOr<Companions> CollectCompanions(const CompanionList& list, const std::string& folder,
                                             const CompanionFetcher& fetch);

// Writes each file atomically, and replaces existing ones. The folder must exist.
absl::Status WriteCompanions(const std::string& folder, const Companions& companions);

// `pinned` is a run's tokenizer_sha256, or empty. InvalidArgument: the companions include
// tokenizers, and none has the pinned SHA-256.
absl::Status CheckPinnedTokenizer(absl::string_view pinned, const Companions& companions);

}  // namespace distro
