#include "common/method/codec/payload_framing.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/checksum.h"
#include "common/base/status_macros.h"
#include "common/model/layout/matrix.h"

namespace distro {
namespace {

constexpr uint32_t kMagic = 0x50545344;  // "DSTP"
constexpr uint8_t kVersion = 1;
constexpr uint64_t kChecksumBytes = 8;

template <typename T>
absl::Status CheckField(absl::string_view what, T found, T expected) {
  if (found == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("payload: ", what, " ", found, ", expected ", expected));
}

absl::StatusOr<PayloadHeader> ReadHeader(ByteReader* reader) {
  DISTRO_ASSIGN_OR_RETURN(const uint32_t magic, reader->Read<uint32_t>("payload: magic"));
  DISTRO_ASSIGN_OR_RETURN(const uint8_t version, reader->Read<uint8_t>("payload: version"));
  DISTRO_ASSIGN_OR_RETURN(const uint8_t kind, reader->Read<uint8_t>("payload: kind"));
  DISTRO_ASSIGN_OR_RETURN(const uint16_t k, reader->Read<uint16_t>("payload: k"));
  DISTRO_ASSIGN_OR_RETURN(const uint64_t layout_hash,
                          reader->Read<uint64_t>("payload: layout hash"));
  DISTRO_ASSIGN_OR_RETURN(const uint64_t round, reader->Read<uint64_t>("payload: round"));
  DISTRO_ASSIGN_OR_RETURN(const uint32_t segment, reader->Read<uint32_t>("payload: segment"));
  DISTRO_ASSIGN_OR_RETURN(const uint32_t blocks, reader->Read<uint32_t>("payload: blocks"));
  DISTRO_ASSIGN_OR_RETURN(const uint64_t body_bytes, reader->Read<uint64_t>("payload: body bytes"));
  DISTRO_RETURN_IF_ERROR(CheckField("magic", magic, kMagic));
  DISTRO_RETURN_IF_ERROR(CheckField<int>("format version", version, kVersion));
  return PayloadHeader{.kind = static_cast<PayloadKind>(kind),
                       .k = k,
                       .layout_hash = layout_hash,
                       .round = RoundId(round),
                       .segment = SegmentId(segment),
                       .blocks = blocks,
                       .body_bytes = body_bytes};
}

absl::Status CheckHeader(const PayloadHeader& header, const PayloadExpectation& expected,
                         PayloadKind kind, int k) {
  DISTRO_RETURN_IF_ERROR(CheckField("kind", static_cast<int>(header.kind), static_cast<int>(kind)));
  DISTRO_RETURN_IF_ERROR(CheckField("k", header.k, k));
  if (header.layout_hash != expected.layout_hash) {
    return absl::InvalidArgumentError(absl::StrCat("payload: layout hash ",
                                                   ToHex(header.layout_hash), ", expected ",
                                                   ToHex(expected.layout_hash)));
  }
  DISTRO_RETURN_IF_ERROR(CheckField("round", header.round.value(), expected.round.value()));
  DISTRO_RETURN_IF_ERROR(CheckField("segment", header.segment.value(), expected.segment.value()));
  return CheckField("blocks", header.blocks, expected.blocks);
}

}  // namespace

PayloadIdentity IdentifyPayload(const Layout& layout, RoundId round, SegmentId segment) {
  return {.layout_hash = layout.manifest().short_hash(), .round = round, .segment = segment};
}

PayloadExpectation ExpectPayload(const Layout& layout, RoundId round, SegmentId segment, int k) {
  return {.layout_hash = layout.manifest().short_hash(),
          .round = round,
          .segment = segment,
          .blocks = static_cast<uint32_t>(layout.SegmentBlocks(segment)),
          .k = k};
}

std::string StartPayload(const PayloadIdentity& identity, PayloadKind kind, int k, int64_t blocks) {
  std::string bytes;
  AppendLittleEndian(&bytes, kMagic);
  AppendLittleEndian(&bytes, kVersion);
  AppendLittleEndian(&bytes, kind);
  AppendLittleEndian(&bytes, static_cast<uint16_t>(k));
  AppendLittleEndian(&bytes, identity.layout_hash);
  AppendLittleEndian(&bytes, identity.round.value());
  AppendLittleEndian(&bytes, identity.segment.value());
  AppendLittleEndian(&bytes, static_cast<uint32_t>(blocks));
  // The body's length, which only FinishPayload knows.
  AppendLittleEndian(&bytes, uint64_t{0});
  return bytes;
}

// Fills in the body's length and appends the checksum.
std::string FinishPayload(std::string bytes) {
  const uint64_t body_bytes = bytes.size() - kPayloadHeaderBytes;
  std::memcpy(bytes.data() + kPayloadHeaderBytes - sizeof(body_bytes), &body_bytes,
              sizeof(body_bytes));
  AppendLittleEndian(&bytes, Xxh3(bytes));
  return bytes;
}

absl::StatusOr<PayloadView> OpenPayload(absl::string_view bytes, const PayloadExpectation& expected,
                                        PayloadKind kind, int k, uint64_t max_bytes) {
  // Before anything is read: layout and K bound the size of every valid payload.
  if (bytes.size() > max_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("payload: ", bytes.size(), " bytes, at most ", max_bytes, " are possible"));
  }
  ByteReader reader(bytes);
  DISTRO_ASSIGN_OR_RETURN(const PayloadHeader header, ReadHeader(&reader));
  DISTRO_RETURN_IF_ERROR(CheckHeader(header, expected, kind, k));
  DISTRO_ASSIGN_OR_RETURN(const absl::string_view body,
                          reader.ReadBytes(header.body_bytes, "payload: body"));
  DISTRO_ASSIGN_OR_RETURN(const uint64_t checksum, reader.Read<uint64_t>("payload: checksum"));
  DISTRO_RETURN_IF_ERROR(CheckField<uint64_t>("bytes after the checksum:", reader.remaining(), 0));
  // After the header, so that a payload of another round or layout costs no pass over its bytes.
  const uint64_t computed = Xxh3(bytes.substr(0, bytes.size() - kChecksumBytes));
  if (checksum != computed) {
    return absl::InvalidArgumentError(
        absl::StrCat("payload: checksum ", ToHex(checksum), ", its bytes give ", ToHex(computed)));
  }
  return PayloadView{header, body};
}

absl::Status CheckExpectedK(int k) {
  if (1 <= k && k <= kBlockElements) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("payload: expected k ", k, " is outside 1..4096"));
}

}  // namespace distro
