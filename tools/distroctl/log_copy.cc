#include "tools/distroctl/log_copy.h"

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/folder.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/net/s3/s3_client.h"
#include "server/log/bucket/folder_copy.h"
#include "server/log/bucket/store_folder.h"
#include "server/log/disk.h"
#include "server/log/read_run.h"

namespace distro::tools {
namespace {

bool IsBucket(absl::string_view place) { return absl::StartsWith(place, "s3://"); }

absl::Status FetchLog(S3Client* bucket, const std::string& place, const std::string& folder,
                      Log* log) {
  server::FolderCopy copy(bucket, folder, server::Disk::Real(), log);
  DISTRO_RETURN_IF_ERROR(copy.Fetch().status());
  if (Exists(server::RunFilePath(folder))) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(place, ": has no run"));
}

}  // namespace

absl::StatusOr<Report> CopyLog(const LogCopyOptions& options,
                               const std::function<void(absl::string_view)>& progress) {
  if (options.from.empty() || options.to.empty() ||
      IsBucket(options.from) == IsBucket(options.to)) {
    return absl::InvalidArgumentError(
        "--from and --to: one must be an aggregator's data folder, the other s3://BUCKET/PREFIX");
  }
  const bool fetch = IsBucket(options.from);
  const std::string& folder = fetch ? options.to : options.from;
  DISTRO_ASSIGN_OR_RETURN(const auto bucket,
                          S3Client::Open(fetch ? options.from : options.to, Clock::Real()));
  if (fetch) {
    DISTRO_RETURN_IF_ERROR(CreateFolders(folder));
  } else if (!Exists(folder)) {
    return absl::NotFoundError(absl::StrCat("--from: ", folder, ": there is no such folder"));
  }
  DISTRO_ASSIGN_OR_RETURN(const FolderLock lock, FolderLock::Take(folder));
  Log log(LogLevel::kInfo, Clock::Real(), progress);
  if (!fetch) {
    DISTRO_RETURN_IF_ERROR(server::StoreFolder(bucket.get(), folder, &log));
  } else {
    DISTRO_RETURN_IF_ERROR(FetchLog(bucket.get(), options.from, folder, &log));
  }
  return Report{.text = absl::StrCat("copied ", options.from, " to ", options.to),
                .json = {{"from", options.from}, {"to", options.to}}};
}

Flag DataDirFlag(std::string* value) {
  return {
      .name = "data_dir",
      .value = value,
      .help =
          "Data folder of an aggregator; only read. Or s3://BUCKET/PREFIX: the run is first "
          "copied to a folder below TMPDIR, which stays if the command is interrupted. Required.",
      .takes = Takes::kFolder};
}

absl::StatusOr<Report> ReadLog(std::string* data_dir,
                               const std::function<void(absl::string_view)>& progress,
                               absl::FunctionRef<absl::StatusOr<Report>()> read) {
  if (!IsBucket(*data_dir)) return read();
  const std::string place = *data_dir;
  DISTRO_ASSIGN_OR_RETURN(const auto bucket, S3Client::Open(place, Clock::Real()));
  DISTRO_ASSIGN_OR_RETURN(const std::string folder, MakeTemporaryFolder("distroctl"));
  const auto remove = absl::MakeCleanup([&folder] {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  });
  DISTRO_ASSIGN_OR_RETURN(const FolderLock lock, FolderLock::Take(folder));
  Log log(LogLevel::kInfo, Clock::Real(), progress);
  DISTRO_RETURN_IF_ERROR(FetchLog(bucket.get(), place, folder, &log));
  *data_dir = folder;
  absl::StatusOr<Report> report = read();
  if (!report.ok()) return Annotate(report.status(), absl::StrCat("the copy of ", place));
  return report;
}

Command LogCopyCommand(const Console* console) {
  const auto options = std::make_shared<LogCopyOptions>();
  return {
      .name = "log copy",
      .summary = "Copies a run between a data folder and a bucket.",
      .flags = {{.name = "from",
                 .value = &options->from,
                 .help = "Data folder or s3://BUCKET/PREFIX. Required."},
                {.name = "to", .value = &options->to, .help = "The other of the two. Required."}},
      .help =
          R"(Into a bucket: stop the aggregator first, and start it afterwards with --log. Out of a bucket: an aggregator may
serve the run meanwhile; the copy has the rounds up to some moment. After an interruption, give the same command again.
Credentials and server of the bucket: docs/bucket.md.

Examples:
  distroctl log copy --from data --to s3://runs/first
  distroctl log copy --from s3://runs/first --to backup)",
      .run = [options, console]() -> absl::StatusOr<int> {
        return console->Show(CopyLog(*options, console->progress));
      }};
}

}  // namespace distro::tools
