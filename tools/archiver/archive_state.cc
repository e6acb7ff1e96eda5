#include "tools/archiver/archive_state.h"

#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/checksum.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/net/http/object_path.h"
#include "common/net/wire/framed_message.h"

namespace distro::tools {
namespace {

constexpr absl::string_view kMagic = "distro-archiver ";
constexpr uint64_t kVersion = 1;
constexpr size_t kMaxBytes = 4096;

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("state: ", what));
}

// Reads the lines in order; each is "key value\n".
class LineReader {
 public:
  explicit LineReader(absl::string_view text) : text_(text) {}

  absl::StatusOr<absl::string_view> Value(absl::string_view key) {
    const size_t end = text_.find('\n');
    if (end == absl::string_view::npos || !absl::StartsWith(text_, absl::StrCat(key, " "))) {
      return Damaged(absl::StrCat("the line \"", key, "\" is missing"));
    }
    const absl::string_view value = text_.substr(key.size() + 1, end - key.size() - 1);
    text_.remove_prefix(end + 1);
    return value;
  }

  absl::Status Number(absl::string_view key, uint64_t* number) {
    DISTRO_ASSIGN_OR_RETURN(const absl::string_view value, Value(key));
    if (absl::SimpleAtoi(value, number) && absl::StrCat(*number) == value) return absl::OkStatus();
    return Damaged(absl::StrCat(key, " is not a number"));
  }

  absl::Status Hash(absl::string_view key, uint64_t* hash) {
    DISTRO_ASSIGN_OR_RETURN(const absl::string_view value, Value(key));
    if (absl::SimpleHexAtoi(value, hash) && ToHex(*hash) == value) return absl::OkStatus();
    return Damaged(absl::StrCat(key, " is not a hash"));
  }

  absl::string_view rest() const { return text_; }

 private:
  absl::string_view text_;
};

absl::Status ReadSnapshotInfo(LineReader* lines, v1::SnapshotInfo* snapshot) {
  uint64_t round, size_bytes, state_hash, log_hash;
  DISTRO_RETURN_IF_ERROR(lines->Number("round", &round));
  DISTRO_RETURN_IF_ERROR(lines->Hash("log_hash", &log_hash));
  DISTRO_RETURN_IF_ERROR(lines->Hash("state_hash", &state_hash));
  DISTRO_RETURN_IF_ERROR(lines->Number("snapshot_bytes", &size_bytes));
  DISTRO_ASSIGN_OR_RETURN(const absl::string_view hex, lines->Value("snapshot_sha256"));
  const std::string sha256 = absl::HexStringToBytes(hex);
  if (hex.size() != 64 || absl::BytesToHexString(sha256) != hex) {
    return Damaged("snapshot_sha256 is not 64 hexadecimal digits");
  }
  snapshot->set_round(round);
  snapshot->set_size_bytes(size_bytes);
  snapshot->set_sha256(sha256);
  snapshot->set_state_hash(state_hash);
  snapshot->set_log_hash(log_hash);
  return absl::OkStatus();
}

// The text without its last line, the checksum.
absl::StatusOr<absl::string_view> CheckedBody(absl::string_view text) {
  constexpr absl::string_view kKey = "checksum ";
  constexpr size_t kBytes = kKey.size() + 17;
  if (text.size() > kMaxBytes || text.size() < kBytes) {
    return Damaged(absl::StrCat("has ", text.size(), " bytes, which no state file has"));
  }
  const absl::string_view body = text.substr(0, text.size() - kBytes);
  if (text.substr(body.size()) != absl::StrCat(kKey, ToHex(Xxh3(body)), "\n")) {
    return Damaged("the checksum is not that of the lines before it");
  }
  return body;
}

}  // namespace

std::string EncodeArchiveState(const ArchiveState& state) {
  std::string text = absl::StrCat(
      kMagic, kVersion, "\nrun ", state.run_id, "\nepoch ", state.epoch, "\nround ",
      state.snapshot.round(), "\nlog_hash ", ToHex(state.snapshot.log_hash()), "\nstate_hash ",
      ToHex(state.snapshot.state_hash()), "\nsnapshot_bytes ", state.snapshot.size_bytes());
  absl::StrAppend(&text, "\nsnapshot_sha256 ", absl::BytesToHexString(state.snapshot.sha256()),
                  "\npublished_round ", state.published_round, "\nresult_bytes ",
                  state.result_bytes, "\n");
  return absl::StrCat(text, "checksum ", ToHex(Xxh3(text)), "\n");
}

absl::StatusOr<ArchiveState> ParseArchiveState(absl::string_view text) {
  DISTRO_ASSIGN_OR_RETURN(const absl::string_view body, CheckedBody(text));
  LineReader lines(body);
  uint64_t version;
  DISTRO_RETURN_IF_ERROR(lines.Number(absl::StripSuffix(kMagic, " "), &version));
  DISTRO_RETURN_IF_ERROR(Annotate(CheckFormatVersion(version, kVersion), "state"));
  ArchiveState state;
  DISTRO_ASSIGN_OR_RETURN(const absl::string_view run, lines.Value("run"));
  if (!IsRunId(run)) return Damaged("run is not a run id");
  state.run_id = std::string(run);
  DISTRO_RETURN_IF_ERROR(lines.Number("epoch", &state.epoch));
  DISTRO_RETURN_IF_ERROR(ReadSnapshotInfo(&lines, &state.snapshot));
  DISTRO_RETURN_IF_ERROR(lines.Number("published_round", &state.published_round));
  DISTRO_RETURN_IF_ERROR(lines.Number("result_bytes", &state.result_bytes));
  if (!lines.rest().empty()) return Damaged("there are more lines than this format has");
  return state;
}

}  // namespace distro::tools
