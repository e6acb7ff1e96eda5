#include "server/objects/object_routes.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/shared_bytes.h"
#include "common/base/status_macros.h"
#include "common/feed/record_source.h"
#include "common/net/http/object_path.h"
#include "server/log/log_file.h"

namespace distro::server {
namespace {

// Reports what is read of it as sent.
class BytesContent final : public HttpContent {
 public:
  BytesContent(SharedBytes bytes, TransferObserver* observer)
      : bytes_(std::move(bytes)), observer_(observer) {}
  uint64_t bytes() const override { return bytes_->size(); }
  absl::StatusOr<std::string> Read(uint64_t offset, uint64_t size) const override {
    observer_->OnSent(TransferKind::kResult, size);
    return bytes_->substr(offset, size);
  }

 private:
  const SharedBytes bytes_;
  TransferObserver* const observer_;
};

class RecordContent final : public HttpContent {
 public:
  RecordContent(std::shared_ptr<const StoredRecord> record, SegmentId segment,
                TransferObserver* observer)
      : record_(std::move(record)), segment_(segment), observer_(observer) {}
  uint64_t bytes() const override { return record_->payload_bytes(segment_); }
  absl::StatusOr<std::string> Read(uint64_t offset, uint64_t size) const override {
    observer_->OnSent(TransferKind::kResult, size);
    return record_->Read(segment_, offset, size);
  }

 private:
  const std::shared_ptr<const StoredRecord> record_;
  const SegmentId segment_;
  TransferObserver* const observer_;
};

class FileContent final : public HttpContent {
 public:
  FileContent(LogFile file, uint64_t bytes, TransferObserver* observer)
      : file_(std::move(file)), bytes_(bytes), observer_(observer) {}
  uint64_t bytes() const override { return bytes_; }
  absl::StatusOr<std::string> Read(uint64_t offset, uint64_t size) const override {
    observer_->OnSent(TransferKind::kSnapshot, size);
    return file_.ReadAt(offset, size);
  }

 private:
  const LogFile file_;
  const uint64_t bytes_;
  TransferObserver* const observer_;
};

using Content = std::shared_ptr<const HttpContent>;

absl::StatusOr<Content> Find(const ObjectSources& sources, const ObjectName& name) {
  const RoundManager* const manager = sources.host->manager();
  const SnapshotTransfers* const snapshots = sources.host->snapshots();
  if (manager == nullptr || snapshots == nullptr || manager->run().run_id != name.run_id)
    return absl::NotFoundError("this aggregator has another run, or none");
  if (name.result) {
    const RoundPlace place{name.result->round, name.result->segment};
    DISTRO_ASSIGN_OR_RETURN(auto found, manager->FindResult(place, name.sha256));
    if (auto* const bytes = std::get_if<SharedBytes>(&found))
      return std::make_shared<BytesContent>(std::move(*bytes), sources.transfers);
    return std::make_shared<RecordContent>(
        std::get<std::shared_ptr<const StoredRecord>>(std::move(found)), place.segment,
        sources.transfers);
  }
  DISTRO_ASSIGN_OR_RETURN(const auto stored, snapshots->Find(name.sha256));
  DISTRO_ASSIGN_OR_RETURN(LogFile file, LogFile::Open(stored.path));
  return std::make_shared<FileContent>(std::move(file), stored.size_bytes, sources.transfers);
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
