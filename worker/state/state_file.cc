#include "worker/state/state_file.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/checksum.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/method/base/method.h"

namespace distro::worker {
namespace {

constexpr absl::string_view kMagic = "DSTROWST";
constexpr uint32_t kVersion = 3;
constexpr uint32_t kMaxHeaderBytes = 64 * 1024;
constexpr uint32_t kMaxSenders = 4096;
constexpr uint32_t kMaxNameBytes = 256;
constexpr size_t kHashBytes = 32;

absl::string_view HashOf(const Layout& layout) {
  const auto& hash = layout.manifest().hash();
  return {reinterpret_cast<const char*>(hash.data()), hash.size()};
}

void AppendText(std::string* out, absl::string_view text) {
  AppendLittleEndian(out, static_cast<uint32_t>(text.size()));
  absl::StrAppend(out, text);
}

absl::StatusOr<std::string> ReadText(ByteReader* reader, absl::string_view what) {
  DISTRO_ASSIGN_OR_RETURN(const uint32_t size, reader->Read<uint32_t>(what));
  if (size > kMaxNameBytes)
    return absl::InvalidArgumentError(absl::StrCat(what, ": ", size, " bytes"));
  DISTRO_ASSIGN_OR_RETURN(const absl::string_view text, reader->ReadBytes(size, what));
  return std::string(text);
}

std::string MakeHeader(const WorkerState& state, const Layout& layout,
                       const std::optional<PendingRound>& pending) {
  std::string fields;
  AppendText(&fields, state.run_id);
  AppendText(&fields, state.worker);
  absl::StrAppend(&fields, HashOf(layout));
  AppendLittleEndian(&fields, static_cast<uint32_t>(layout.segment_blocks()));
  AppendLittleEndian(&fields, state.epoch.value());
  AppendLittleEndian(&fields, state.next_round.value());
  AppendLittleEndian(&fields, static_cast<uint32_t>(pending.has_value() ? pending->k : 0));
  AppendLittleEndian(&fields, pending.has_value() ? pending->round.value() : uint64_t{0});
  AppendLittleEndian(&fields, state.pending_loss);
  AppendLittleEndian(&fields, state.local_steps);
  AppendLittleEndian(&fields, state.pending_steps);
  AppendLittleEndian(&fields, state.pending_samples);
  // The newest are enough: no record names a process that is long gone.
  const size_t senders = std::min<size_t>(state.senders.size(), kMaxSenders);
  AppendLittleEndian(&fields, static_cast<uint32_t>(senders));
  for (size_t i = state.senders.size() - senders; i < state.senders.size(); ++i)
    AppendLittleEndian(&fields, state.senders[i]);

  std::string header(kMagic);
  AppendLittleEndian(&header, kVersion);
  AppendLittleEndian(&header, static_cast<uint32_t>(fields.size()));
  absl::StrAppend(&header, fields);
  AppendLittleEndian(&header, Xxh3(header));
  return header;
}

// Converts any read error to damage of the local file.
absl::Status Damaged(const absl::Status& status) {
  return absl::DataLossError(absl::StrCat("damaged: ", status.message()));
}

}  // namespace

absl::Status WriteStateFile(const std::string& path, const WorkerState& state,
                            absl::Span<const TensorPieces> elements, const Optimizer& optimizer) {
  const std::string header = MakeHeader(state, optimizer.layout(), optimizer.pending());
  std::vector<absl::string_view> pieces = {header};
  std::string checksums;
  for (const StatePart& part : PartsOf(elements, optimizer)) {
    pieces.insert(pieces.end(), part.begin(), part.end());
    AppendLittleEndian(&checksums, Xxh3(part));
  }
  AppendLittleEndian(&checksums, Xxh3(checksums));
  pieces.push_back(checksums);
  return WritePiecesAtomically(path, pieces);
}

absl::StatusOr<StateReader> StateReader::Open(const std::string& path) {
  DISTRO_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  absl::StatusOr<StateReader> reader = FromBytes(file.bytes());
  if (!reader.ok()) return Annotate(reader.status(), path);
  reader->file_ = std::make_shared<const MappedFile>(std::move(file));  // the bytes stay
  return reader;
}

absl::StatusOr<StateReader> StateReader::FromBytes(absl::string_view bytes) {
  StateReader reader;
  absl::Status status = reader.ParseHeader(bytes);
  if (status.code() == absl::StatusCode::kInvalidArgument) return Damaged(status);
  DISTRO_RETURN_IF_ERROR(status);
  return reader;
}

absl::Status StateReader::ParseHeader(absl::string_view bytes) {
  ByteReader file(bytes);
  DISTRO_ASSIGN_OR_RETURN(const absl::string_view magic, file.ReadBytes(kMagic.size(), "magic"));
  if (magic != kMagic) return absl::InvalidArgumentError("not a worker's state");
  DISTRO_ASSIGN_OR_RETURN(const uint32_t version, file.Read<uint32_t>("version"));
  DISTRO_ASSIGN_OR_RETURN(const uint32_t size, file.Read<uint32_t>("header size"));
  if (size > kMaxHeaderBytes) return absl::InvalidArgumentError("header size");
  DISTRO_ASSIGN_OR_RETURN(const absl::string_view fields, file.ReadBytes(size, "header"));
  const uint64_t computed = Xxh3(bytes.substr(0, file.position()));
  DISTRO_ASSIGN_OR_RETURN(const uint64_t checksum, file.Read<uint64_t>("header checksum"));
  if (checksum != computed) return absl::InvalidArgumentError("header checksum");
  if (version < 1 || version > kVersion) {
    return absl::UnimplementedError(
        absl::StrCat("version ", version, " of a worker's state; this program reads versions 1 to ",
                     kVersion, ": use the version that wrote it, or a later one"));
  }
  body_ = bytes.substr(file.position());

  ByteReader reader(fields);
  DISTRO_ASSIGN_OR_RETURN(state_.run_id, ReadText(&reader, "run id"));
  DISTRO_ASSIGN_OR_RETURN(state_.worker, ReadText(&reader, "worker"));
  DISTRO_ASSIGN_OR_RETURN(const absl::string_view hash,
                          reader.ReadBytes(kHashBytes, "manifest hash"));
  manifest_hash_ = std::string(hash);
  DISTRO_ASSIGN_OR_RETURN(segment_blocks_, reader.Read<uint32_t>("segment blocks"));
  DISTRO_ASSIGN_OR_RETURN(const uint64_t epoch, reader.Read<uint64_t>("epoch"));
  state_.epoch = EpochId(epoch);
  DISTRO_ASSIGN_OR_RETURN(const uint64_t next_round, reader.Read<uint64_t>("next round"));
  state_.next_round = RoundId(next_round);
  DISTRO_ASSIGN_OR_RETURN(pending_k_, reader.Read<uint32_t>("K of the pending update"));
  if (pending_k_ > kBlockElements) return absl::InvalidArgumentError("K of the pending update");
  DISTRO_ASSIGN_OR_RETURN(const uint64_t pending_round, reader.Read<uint64_t>("pending round"));
  pending_round_ = RoundId(pending_round);
  DISTRO_ASSIGN_OR_RETURN(state_.pending_loss, reader.Read<double>("loss of the pending update"));
  if (version >= 2) {
    DISTRO_ASSIGN_OR_RETURN(state_.local_steps, reader.Read<uint64_t>("local steps"));
  }
  if (version >= 3) {
    DISTRO_ASSIGN_OR_RETURN(state_.pending_steps,
                            reader.Read<uint32_t>("local steps of the pending update"));
    if (state_.pending_steps > kMaxLocalSteps)
      return absl::InvalidArgumentError("local steps of the pending update");
    DISTRO_ASSIGN_OR_RETURN(state_.pending_samples,
                            reader.Read<uint64_t>("samples of the pending update"));
  }
  DISTRO_ASSIGN_OR_RETURN(const uint32_t senders, reader.Read<uint32_t>("senders"));
  if (reader.remaining() != uint64_t{senders} * sizeof(uint64_t))
    return absl::InvalidArgumentError("senders");
  for (uint32_t i = 0; i < senders; ++i) {
    DISTRO_ASSIGN_OR_RETURN(const uint64_t sender, reader.Read<uint64_t>("sender"));
    state_.senders.push_back(sender);
  }
  return absl::OkStatus();
}

absl::Status StateReader::CheckLayout(const Layout& layout) const {
  if (manifest_hash_ == HashOf(layout) &&
      segment_blocks_ == static_cast<uint32_t>(layout.segment_blocks()))
    return absl::OkStatus();
  return absl::FailedPreconditionError("the state is of a model with other tensors");
}

absl::StatusOr<StateReader::Contents> StateReader::Read(const Layout& layout,
                                                        const UpdateRuleKind& rule) const {
  DISTRO_RETURN_IF_ERROR(CheckLayout(layout));
  absl::Status checked = CheckParts(body_, PartSizes(layout, rule, pending_k_));
  if (!checked.ok()) return Damaged(checked);
  absl::string_view rest = body_;
  Contents contents{.elements = TakeElements(layout, rule, &rest),
                    .pending = std::nullopt,
                    .local_steps = state_.local_steps,
                    .file = file_};
  if (pending_k_ == 0) return contents;
  contents.pending.emplace();
  contents.pending->round = pending_round_;
  contents.pending->k = static_cast<int>(pending_k_);
  if (absl::Status taken = TakePending(rest, layout, rule, &*contents.pending); !taken.ok())
    return Damaged(taken);
  return contents;
}

}  // namespace distro::worker
