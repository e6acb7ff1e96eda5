#include "tools/distroctl/create_run.h"

#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/folder.h"
#include "common/base/mapped_file.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/base/utf8.h"
#include "common/method/methods.h"
#include "common/model/checkpoint/initial_snapshot.h"
#include "common/net/rpc/status.h"
#include "common/net/wire/frames.h"
#include "common/run/record/header_bound.h"
#include "common/run/round/model_check.h"
#include "common/run/run_config.h"
#include "server/log/snapshot_check.h"
#include "tools/distroctl/admin.h"

namespace distro::tools {
namespace {

using Stream = grpc::ClientReaderWriterInterface<v1::CreateRunRequest, v1::CreateRunResponse>;

constexpr uint64_t kMaxConfigBytes = 1 << 20;
constexpr uint64_t kProgressBytes = 64 << 20;

absl::StatusOr<v1::RunConfig> ReadRunFile(const std::string& path) {
  DISTRO_ASSIGN_OR_RETURN(const std::string json, ReadTextFile(path, kMaxConfigBytes));
  absl::StatusOr<v1::RunConfig> config = ReadRunConfig(json);
  if (!config.ok()) return Annotate(config.status(), path);
  return config;
}

// One file of the upload: the snapshot, followed by the companions.
struct UploadPart {
  uint64_t begin = 0;
  absl::string_view bytes;
  uint64_t end() const { return begin + bytes.size(); }
};

// Sends the files from the offset that the server names, or nothing if it answers that the run
// exists. No frame crosses two files. A failed write means that the server ended the call; the
// caller reads its status.
absl::Status SendParts(absl::Span<const UploadPart> parts, Stream* stream,
                       const std::function<void(absl::string_view)>& progress,
                       std::string* run_id) {
  v1::CreateRunResponse response;
  if (!stream->Read(&response)) return absl::OkStatus();
  if (response.has_run_id()) {
    *run_id = response.run_id();
    return absl::OkStatus();
  }
  const uint64_t total = parts.back().end();
  if (!response.has_offset() || response.offset() > total)
    return absl::InternalError("the aggregator did not name an offset within the upload");
  v1::CreateRunRequest request;
  uint64_t offset = response.offset();
  for (const UploadPart& part : parts) {
    while (offset < part.end()) {
      const uint64_t bytes = FrameBytes(offset - part.begin, part.bytes.size());
      request.mutable_frame()->set_offset(offset);
      request.mutable_frame()->set_data(part.bytes.data() + (offset - part.begin), bytes);
      if (!stream->Write(request)) return absl::OkStatus();
      offset += bytes;
      if (offset % kProgressBytes == 0 || offset == total)
        progress(absl::StrCat("uploaded ", offset, " of ", total, " bytes"));
    }
  }
  return absl::OkStatus();
}

// Aggregators of older versions create the run without companions.
absl::Status CheckStored(v1::AdminService::StubInterface* admin, const Companions& companions) {
  if (companions.empty()) return absl::OkStatus();
  grpc::ClientContext context;
  v1::GetRunResponse run;
  DISTRO_RETURN_IF_ERROR(FromGrpcStatus(admin->GetRun(&context, {}, &run)));
  if (run.companions_size() == static_cast<int>(companions.size())) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("run ", ShownText(run.run_id()), " exists without ", companions.front().name,
                   " and other files that travel with a model: it was created without them, or by "
                   "an aggregator of an older version; copy them beside its checkpoints yourself"));
}

absl::Status FinishStream(Stream* stream, std::string* run_id) {
  v1::CreateRunResponse response;
  stream->WritesDone();
  while (stream->Read(&response)) {
    if (response.has_run_id()) *run_id = response.run_id();
  }
  return FromGrpcStatus(stream->Finish());
}

}  // namespace

absl::StatusOr<Report> CreateRun(const CreateRunOptions& options,
                                 v1::AdminService::StubInterface* admin,
                                 const std::function<void(absl::string_view)>& progress) {
  if (options.run.empty()) return absl::InvalidArgumentError("--run: is required, a run.json");
  if (options.model.empty())
    return absl::InvalidArgumentError("--model: is required, a checkpoint folder");
  DISTRO_ASSIGN_OR_RETURN(const v1::RunConfig asked, ReadRunFile(options.run));
  DISTRO_ASSIGN_OR_RETURN(const v1::RunConfig config, CompleteRunConfig(asked));

  DISTRO_ASSIGN_OR_RETURN(const std::string folder, MakeTemporaryFolder("distroctl"));
  const auto remove = absl::MakeCleanup([&folder] {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  });
  const std::string path = folder + "/snapshot.safetensors";
  DISTRO_ASSIGN_OR_RETURN(const InitialSnapshot initial,
                          PrepareInitialSnapshot(options.model, path));
  DISTRO_ASSIGN_OR_RETURN(const MappedFile snapshot, MappedFile::Open(path));
  DISTRO_ASSIGN_OR_RETURN(const auto layout, server::LayoutOfSnapshot(path, config));
  // Checked before hours of upload.
  DISTRO_RETURN_IF_ERROR(
      Annotate(CheckModelOfRun(config, *layout, initial.model_config_json), options.model));
  DISTRO_RETURN_IF_ERROR(
      MethodOf(config).MakeRounds(config, layout, initial.model_config_json).status());
  DISTRO_RETURN_IF_ERROR(CheckHeaderBound(config, HeaderShapeOf(config, *layout)));
  DISTRO_RETURN_IF_ERROR(CheckPinnedTokenizer(config.tokenizer_sha256(), initial.companions));

  v1::CreateRunRequest request;
  v1::CreateRunHeader& header = *request.mutable_header();
  *header.mutable_config() = asked;  // an existing run may have other defaults
  header.set_model_config_json(initial.model_config_json);
  header.set_snapshot_bytes(snapshot.bytes().size());
  header.set_snapshot_sha256(initial.sha256.data(), initial.sha256.size());
  *header.mutable_companions() = DescribeCompanions(initial.companions);
  std::vector<UploadPart> parts = {{0, snapshot.bytes()}};
  for (const Companion& companion : initial.companions)
    parts.push_back({parts.back().end(), companion.bytes});

  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = admin->CreateRun(&context);
  stream->Write(request);
  std::string run_id;
  std::string existing;
  if (absl::Status status = SendParts(parts, stream.get(), progress, &existing); !status.ok()) {
    context.TryCancel();
    stream->Finish().error_code();
    return status;
  }
  DISTRO_RETURN_IF_ERROR(FinishStream(stream.get(), &run_id));
  DISTRO_RETURN_IF_ERROR(CheckStored(admin, initial.companions));
  if (!existing.empty()) {
    return Report{
        .text = absl::StrCat("run ", existing, " exists; nothing more had to be uploaded"),
        .json = {{"run_id", existing}, {"created", false}}};
  }
  return Report{
      .text = absl::StrCat("created run ", ShownText(run_id), ": ", config.rounds(), " rounds of ",
                           config.samples_per_worker(), " samples a worker"),
      .json = {{"run_id", run_id}, {"created", true}}};
}

Command RunCreateCommand(const Console* console) {
  struct Given {
    ChannelOptions channel;
    CreateRunOptions options;
  };
  const auto given = std::make_shared<Given>();
  return {
      .name = "run create",
      .arguments = {{"HOST:PORT", &given->channel.aggregator}},
      .summary = "Uploads a run and its initial model to an aggregator that has none.",
      .flags = WithClientFlags({{.name = "run",
                                 .value = &given->options.run,
                                 .help = "run.json (docs/run_configuration.md). Required.",
                                 .takes = Takes::kFile},
                                {.name = "model",
                                 .value = &given->options.model,
                                 .help = "Checkpoint folder with the initial model. Required.",
                                 .takes = Takes::kFolder}},
                               &given->channel),
      .help =
          R"(Uploads the model as float32, with the tokenizer and companions in its folder. If interrupted, the same command resumes.
If the run exists already, it prints that run; another configuration or model is refused. Workers may be started
earlier: they wait for the run. Role admin.

Example:
  distroctl run create aggregator.example:7700 --run run.json --model initial --ca ca.pem --token_file admin.token)",
      .run = [given, console]() -> absl::StatusOr<int> {
        DISTRO_ASSIGN_OR_RETURN(const auto admin, OpenAdmin(given->channel));
        return console->Show(CreateRun(given->options, admin.get(), console->progress));
      }};
}

}  // namespace distro::tools
