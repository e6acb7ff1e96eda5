#include "tools/archiver/archive_log.h"

#include "common/base/checksum.h"
#include "common/base/status_macros.h"
#include "common/net/wire/framed_message.h"

namespace distro::tools {
namespace {

constexpr absl::string_view kMagic = "DSTRARCH";

// Whether the round's record directly follows the last header.
bool Follows(const v1::StoredArchive& archive, const v1::RoundHeader& round) {
  return archive.headers().empty() || Xxh3(*archive.headers().rbegin()) == round.predecessor_hash();
}

}  // namespace

v1::StoredArchive ArchiveOf(const v1::GetRunResponse& run) {
  v1::StoredArchive archive;
  v1::StoredRun& stored = *archive.mutable_run();
  stored.set_run_id(run.run_id());
  *stored.mutable_config() = run.config();
  if (run.created_rounds() > 0) stored.mutable_config()->set_rounds(run.created_rounds());
  stored.set_model_config_json(run.model_config_json());
  *stored.mutable_companions() = run.companions();
  stored.set_created_sha256(run.created_sha256());
  archive.set_data_fingerprint(run.data_fingerprint());
  return archive;
}

void AddHeader(const CommittedRound& round, v1::StoredArchive* archive) {
  if (!Follows(*archive, *round.header)) archive->clear_headers();
  if (round.header_bytes == nullptr) return;
  archive->add_headers(*round.header_bytes);
  if (archive->headers_size() > kArchivedHeaders)
    archive->mutable_headers()->erase(archive->headers().begin());
}

std::string EncodeArchiveLog(const v1::StoredArchive& archive) {
  return EncodeFramedMessage(kMagic, archive);
}

absl::StatusOr<v1::StoredArchive> ParseArchiveLog(absl::string_view bytes) {
  v1::StoredArchive archive;
  DISTRO_RETURN_IF_ERROR(ParseFramedMessage(bytes, kMagic, &archive));
  return archive;
}

}  // namespace distro::tools
