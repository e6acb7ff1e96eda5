#include "server/objects/object_routes.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/net/http/object_path.h"
#include "server/log/log_file.h"
#include "server/objects/result_reader.h"

namespace distro::server {
namespace {

// Reports what is read of it as sent.
class SentContent final : public HttpContent {
 public:
  using Reader = std::function<absl::StatusOr<std::string>(uint64_t offset, uint64_t size)>;

  SentContent(uint64_t bytes, Reader read, TransferKind kind, const ObjectSources& sources)
      : bytes_(bytes), read_(std::move(read)), kind_(kind), sources_(sources) {}
  uint64_t bytes() const override { return bytes_; }
  absl::StatusOr<std::string> Read(uint64_t offset, uint64_t size) const override {
    sources_.transfers->OnSent(kind_, size);
    absl::StatusOr<std::string> read = read_(offset, size);
    if (!read.ok()) sources_.log->Warning("object broken off", {{"error", read.status()}});
    return read;
  }

 private:
  const uint64_t bytes_;
  const Reader read_;
  const TransferKind kind_;
  const ObjectSources sources_;
};

using Content = std::shared_ptr<const HttpContent>;

absl::StatusOr<Content> FindResult(const ObjectSources& sources, const RoundManager& manager,
                                   const RoundPlace& place, const std::string& sha256) {
  auto reader = std::make_shared<ResultReader>(
      place.segment, [&manager, place, sha256] { return manager.FindResult(place, sha256); });
  DISTRO_ASSIGN_OR_RETURN(const uint64_t bytes, reader->Open());
  if (reader->record() != nullptr)
    DISTRO_RETURN_IF_ERROR(manager.VerifyResult(place, reader->record()));
  const auto read = [reader](uint64_t offset, uint64_t size) { return reader->Read(offset, size); };
  return std::make_shared<SentContent>(bytes, read, TransferKind::kResult, sources);
}

absl::StatusOr<Content> FindSnapshot(const ObjectSources& sources, const SnapshotTransfers& stored,
                                     const std::string& sha256) {
  DISTRO_ASSIGN_OR_RETURN(const auto found, stored.Find(sha256));
  DISTRO_ASSIGN_OR_RETURN(LogFile opened, LogFile::Open(found.path));
  auto file = std::make_shared<const LogFile>(std::move(opened));
  const auto read = [file](uint64_t offset, uint64_t size) { return file->ReadAt(offset, size); };
  return std::make_shared<SentContent>(found.size_bytes, read, TransferKind::kSnapshot, sources);
}

absl::StatusOr<Content> Find(const ObjectSources& sources, const ObjectName& name) {
  const RoundManager* const manager = sources.host->manager();
  const SnapshotTransfers* const snapshots = sources.host->snapshots();
  if (manager == nullptr || snapshots == nullptr || manager->run().run_id != name.run_id)
    return absl::NotFoundError("this aggregator has another run, or none");
  if (!name.result) return FindSnapshot(sources, *snapshots, name.sha256);
  return FindResult(sources, *manager, {name.result->round, name.result->segment}, name.sha256);
}

HttpResponse Failure(int status, std::string text) {
  return {.status = status,
          .body = absl::StrCat(text, "\n"),
          .headers = {{"Cache-Control", "no-store"}}};
}

// A record that was pruned while it was read is gone like one that was never there.
bool IsGone(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsFailedPrecondition(status);
}

HttpResponse Answer(const ObjectSources& sources, const HttpRequest& request) {
  const std::optional<ObjectName> name = ParseObjectPath(request.path);
  if (!name) return Failure(404, "not the name of an object");
  absl::StatusOr<Content> content = Find(sources, *name);
  if (IsGone(content.status())) return Failure(404, "there is no such object");
  if (!content.ok()) {
    sources.log->Warning("object not served",
                         {{"path", request.path}, {"error", content.status()}});
    return Failure(503, "the object cannot be read: the aggregator's log says why");
  }
  const std::string sha256 = absl::BytesToHexString(name->sha256);
  return {.content_type = "application/octet-stream",
          .headers = {{"Cache-Control", "public, max-age=31536000, immutable"},
                      {"ETag", absl::StrCat("\"", sha256, "\"")}},
          .content = *std::move(content)};
}

}  // namespace

HttpRoute ObjectRoute(const ObjectSources& sources) {
  return {.path = std::string(kObjectsPath),
          .handler = [sources](const HttpRequest& request) { return Answer(sources, request); },
          .prefix = true};
}

HttpLimits ObjectLimits() {
  return {.connections = 256,
          .connections_of_peer = 256,
          .answer_bytes = size_t{128} << 20,
          .queue = 256,
          .handler_share = 1};
}

}  // namespace distro::server
