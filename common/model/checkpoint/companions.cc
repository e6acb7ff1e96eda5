#include "common/model/checkpoint/companions.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/checksum.h"
#include "common/base/file.h"
#include "common/base/foreign_file.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"

namespace distro {
namespace {

constexpr absl::string_view kNames[] = {
    "adapter_config.json", "chat_template.jinja",    "chat_template.json",
    "distro_module.json",  "generation_config.json", "special_tokens_map.json",
    "tokenizer.json",      "tokenizer.model",        "tokenizer_config.json"};
// The companions that are tokenizers, as distro-data names them in its index.
constexpr absl::string_view kTokenizers[] = {"tokenizer.json", "tokenizer.model"};

absl::Status Wrong(absl::string_view name, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("companion ", ShownText(name, 80), ": ", what));
}

absl::Status TooLarge() {
  return absl::InvalidArgumentError(absl::StrCat(
      "companions: together they have more than ", kMaxCompanionBytes,
      " bytes: remove from the folder what need not travel (", absl::StrJoin(kNames, ", "), ")"));
}

std::string DigestBytes(absl::string_view bytes) {
  const Sha256Digest digest = Sha256(bytes);
  return std::string(digest.begin(), digest.end());
}

}  // namespace

absl::StatusOr<Companions> ReadCompanions(const std::string& folder) {
  Companions companions;
  uint64_t left = kMaxCompanionBytes;
  for (const absl::string_view name : kNames) {
    const std::string path = absl::StrCat(folder, "/", name);
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    if (std::filesystem::file_size(path, ignored) > left && !ignored) return TooLarge();
    DISTRO_ASSIGN_OR_RETURN(std::string bytes, ReadFile(path, left));
    if (bytes.empty())
      return absl::InvalidArgumentError(absl::StrCat(path, ": is empty: fill or remove it"));
    if (const std::string what = ForeignFormat(bytes); !what.empty())
      return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
    left -= bytes.size();
    companions.push_back({std::string(name), std::move(bytes)});
  }
  return companions;
}

CompanionList DescribeCompanions(const Companions& companions) {
  CompanionList list;
  for (const Companion& companion : companions) {
    v1::CompanionFile* file = list.Add();
    file->set_name(companion.name);
    file->set_size_bytes(companion.bytes.size());
    file->set_sha256(DigestBytes(companion.bytes));
  }
  return list;
}

absl::Status CheckCompanionList(const CompanionList& list) {
  uint64_t left = kMaxCompanionBytes;
  absl::string_view before;
  for (const v1::CompanionFile& file : list) {
    if (std::ranges::find(kNames, file.name()) == std::end(kNames))
      return Wrong(file.name(), "is not one of the files that travel");
    if (file.name() <= before) return Wrong(file.name(), "comes twice, or out of order");
    if (file.sha256().size() != sizeof(Sha256Digest))
      return Wrong(file.name(), "its SHA-256 does not have 32 bytes");
    if (file.size_bytes() == 0) return Wrong(file.name(), "is empty");
    if (file.size_bytes() > left) return TooLarge();
    left -= file.size_bytes();
    before = file.name();
  }
  return absl::OkStatus();
}

uint64_t CompanionBytes(const CompanionList& list) {
  uint64_t bytes = 0;
  for (const v1::CompanionFile& file : list) bytes += file.size_bytes();
  return bytes;
}

absl::StatusOr<Companions> SplitCompanions(const CompanionList& list, absl::string_view bytes) {
  if (bytes.size() != CompanionBytes(list)) {
    return absl::InvalidArgumentError(absl::StrCat("companions: ", bytes.size(), " bytes, and ",
                                                   CompanionBytes(list), " were announced"));
  }
  Companions companions;
  for (const v1::CompanionFile& file : list) {
    const absl::string_view part = bytes.substr(0, file.size_bytes());
    bytes.remove_prefix(part.size());
    if (DigestBytes(part) != file.sha256())
      return Wrong(file.name(), "its SHA-256 is not the announced one");
    companions.push_back({file.name(), std::string(part)});
  }
  return companions;
}

absl::StatusOr<Companions> ReadListedCompanions(const CompanionList& list,
                                                const std::string& folder) {
  Companions companions;
  for (const v1::CompanionFile& file : list) {
    const std::string path = absl::StrCat(folder, "/", file.name());
    absl::StatusOr<std::string> bytes = ReadFile(path, file.size_bytes());
    if (absl::IsNotFound(bytes.status()))
      return absl::InvalidArgumentError(bytes.status().message());
    DISTRO_RETURN_IF_ERROR(bytes.status());
    if (DigestBytes(*bytes) != file.sha256()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": its SHA-256 is not that of the run's companion"));
    }
    companions.push_back({file.name(), *std::move(bytes)});
  }
  return companions;
}

absl::StatusOr<Companions> CollectCompanions(const CompanionList& list, const std::string& folder,
                                             const CompanionFetcher& fetch) {
  DISTRO_RETURN_IF_ERROR(CheckCompanionList(list));
  if (list.empty()) return Companions();
  DISTRO_RETURN_IF_ERROR(CreateFolders(folder));
  for (const v1::CompanionFile& file : list) {
    CompanionList one;
    *one.Add() = file;
    if (ReadListedCompanions(one, folder).ok()) continue;
    DISTRO_RETURN_IF_ERROR(fetch(file, absl::StrCat(folder, "/", file.name())));
  }
  return ReadListedCompanions(list, folder);
}

absl::Status WriteCompanions(const std::string& folder, const Companions& companions) {
  for (const Companion& companion : companions) {
    DISTRO_RETURN_IF_ERROR(
        WriteFileAtomically(absl::StrCat(folder, "/", companion.name), companion.bytes));
  }
  return absl::OkStatus();
}

absl::Status CheckPinnedTokenizer(absl::string_view pinned, const Companions& companions) {
  if (pinned.empty()) return absl::OkStatus();
  std::string others;
  for (const Companion& companion : companions) {
    if (std::ranges::find(kTokenizers, companion.name) == std::end(kTokenizers)) continue;
    const std::string sha256 = ToHex(Sha256(companion.bytes));
    if (sha256 == pinned) return absl::OkStatus();
    absl::StrAppend(&others, others.empty() ? "" : ", ", companion.name, " is ", sha256);
  }
  if (others.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("tokenizer_sha256: is ", pinned, ", and the initial folder has another (",
                   others, "): put the tokenizer of the data into the folder, or pin this one"));
}

}  // namespace distro
