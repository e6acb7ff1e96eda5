// Payloads of all three kinds. The first input byte chooses what is expected and whether the header
// and the checksum are made right first, so that the fuzzer gets inside; whatever is accepted must
// encode to the same bytes again, and both ways of reading an update must agree.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "common/base/checksum.h"
#include "common/codec/payload.h"
#include "common/codec/update_reader.h"
#include "common/update/votes.h"
#include "tests/testing/plain_updates.h"

namespace distro {
namespace {

using ::distro::testing::DecodeUpdate;

constexpr PayloadIdentity kIdentity = {
    .layout_hash = 7, .round = RoundId(3), .segment = SegmentId(1)};

void Require(bool condition) {
  if (!condition) std::abort();
}

// A payload with the right framing around `body`.
std::string Frame(absl::string_view body, PayloadKind kind, int k, uint32_t blocks) {
  std::string bytes = kind == PayloadKind::kVotes
                          ? EncodeVotes(kIdentity, Votes())
                          : EncodeUpdate(kIdentity, {.k = k, .positions = {}, .signs = {}});
  bytes.resize(kPayloadHeaderBytes);
  const uint64_t body_bytes = body.size();
  std::memcpy(bytes.data() + 28, &blocks, sizeof(blocks));
  std::memcpy(bytes.data() + 32, &body_bytes, sizeof(body_bytes));
  bytes.append(body.data(), body.size());
  const uint64_t checksum = Xxh3(bytes);
  bytes.append(reinterpret_cast<const char*>(&checksum), sizeof(checksum));
  return bytes;
}

void FuzzVotes(const std::string& bytes, const PayloadExpectation& expected) {
  const absl::StatusOr<Votes> votes = DecodeVotes(bytes, expected);
  Require(votes.ok() || votes.status().code() == absl::StatusCode::kInvalidArgument);
  if (!votes.ok()) return;
  Require(ValidateVotes(*votes, expected.blocks).ok());
  Require(EncodeVotes(kIdentity, *votes) == bytes);
}

void FuzzUpdate(const std::string& bytes, const PayloadExpectation& expected) {
  const absl::StatusOr<SparseUpdate> update = DecodeUpdate(bytes, expected);
  Require(update.ok() || update.status().code() == absl::StatusCode::kInvalidArgument);
  const WeightedPayload payload = {bytes, 1};
  Require(ValidateUpdate(bytes, expected).ok() == update.ok());
  Require(CombinePayloads({&payload, 1}, expected).ok() == update.ok());
  if (update.ok()) Require(EncodeUpdate(kIdentity, *update) == bytes);
}

}  // namespace
}  // namespace distro

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace distro;
  if (size < 2) return 0;
  constexpr int kKs[] = {0, 1, 3, 4, 8, 9, 20, 0};
  const int k = kKs[data[0] % 8];
  const bool frame = (data[0] & 0x80) == 0;
  const uint32_t blocks = data[1] + (data[0] & 0x40 ? 256 : 0);
  const absl::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  const PayloadKind kind = k == 0   ? PayloadKind::kVotes
                           : k <= 8 ? PayloadKind::kUpdateRecords
                                    : PayloadKind::kUpdateGaps;
  const std::string bytes = frame ? Frame(rest, kind, k, blocks) : std::string(rest);
  const PayloadExpectation expected = {.layout_hash = kIdentity.layout_hash,
                                       .round = kIdentity.round,
                                       .segment = kIdentity.segment,
                                       .blocks = blocks,
                                       .k = k};
  k == 0 ? FuzzVotes(bytes, expected) : FuzzUpdate(bytes, expected);
  return 0;
}
