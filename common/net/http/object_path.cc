#include "common/net/http/object_path.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/checksum.h"

namespace distro {
namespace {

constexpr absl::string_view kSnapshots = "snapshots";

// Accepts more than ObjectPath makes, such as "007": ParseObjectPath compares.
std::optional<ObjectName> Read(const std::vector<absl::string_view>& parts) {
  ObjectName name{.run_id = std::string(parts[0])};
  absl::string_view digits = parts[2];
  if (parts[1] != kSnapshots) {
    const std::pair<absl::string_view, absl::string_view> last =
        absl::StrSplit(parts[2], absl::MaxSplits('-', 1));
    uint64_t round = 0;
    uint32_t segment = 0;
    if (!absl::SimpleAtoi(parts[1], &round) || !absl::SimpleAtoi(last.first, &segment))
      return std::nullopt;
    name.result = ObjectName::Result{RoundId(round), SegmentId(segment)};
    digits = last.second;
  }
  if (digits.size() != 2 * sizeof(Sha256Digest)) return std::nullopt;
  name.sha256 = absl::HexStringToBytes(digits);
  return name;
}

}  // namespace

bool IsRunId(absl::string_view text) {
  return !text.empty() && text.size() <= 128 &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == absl::string_view::npos;
}

std::string ObjectPath(const ObjectName& name) {
  const std::string sha256 = absl::BytesToHexString(name.sha256);
  if (!name.result) return absl::StrCat(kObjectsPath, name.run_id, "/", kSnapshots, "/", sha256);
  return absl::StrCat(kObjectsPath, name.run_id, "/", name.result->round.value(), "/",
                      name.result->segment.value(), "-", sha256);
}

std::optional<ObjectName> ParseObjectPath(absl::string_view path) {
  absl::string_view rest = path;
  if (!absl::ConsumePrefix(&rest, kObjectsPath)) return std::nullopt;
  const std::vector<absl::string_view> parts = absl::StrSplit(rest, '/');
  if (parts.size() != 3) return std::nullopt;
  std::optional<ObjectName> name = Read(parts);
  if (!name || !IsRunId(name->run_id) || ObjectPath(*name) != path) return std::nullopt;
  return name;
}

}  // namespace distro
