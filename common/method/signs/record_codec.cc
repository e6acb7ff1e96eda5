#include "common/method/signs/record_codec.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <type_traits>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "common/method/signs/unrank_four.h"

namespace distro {
namespace {

constexpr int kRankBits[kMaxRecordK + 1] = {0, 13, 23, 34, 44, 54, 63, 72, 81};

// A record and up to seven bits before it.
template <int k>
using Window = std::conditional_t<(k <= 4), uint64_t, uint128>;

// Calls function(integral_constant<int, k>).
template <typename Function>
auto WithConstantK(int k, Function function) {
  assert(1 <= k && k <= kMaxRecordK);
  switch (k) {
    case 1:
      return function(std::integral_constant<int, 1>());
    case 2:
      return function(std::integral_constant<int, 2>());
    case 3:
      return function(std::integral_constant<int, 3>());
    case 4:
      return function(std::integral_constant<int, 4>());
    case 5:
      return function(std::integral_constant<int, 5>());
    case 6:
      return function(std::integral_constant<int, 6>());
    case 7:
      return function(std::integral_constant<int, 7>());
    default:
      return function(std::integral_constant<int, 8>());
  }
}

template <int k>
RankInt<k> Rank(const uint16_t* positions) {
  if constexpr (k == 1) {
    return positions[0];
  } else {
    return Binomial<k>(positions[k - 1]) + Rank<k - 1>(positions);
  }
}

template <int k>
void Unrank(RankInt<k> rank, uint16_t* positions) {
  positions[k - 1] = static_cast<uint16_t>(TakeElement<k>(&rank));
  if constexpr (k > 1) Unrank<k - 1>(static_cast<RankInt<k - 1>>(rank), positions);
}

template <int k>
Window<k> LoadWindow(absl::string_view body, uint64_t byte) {
  Window<k> window = 0;
  if (byte + sizeof(window) <= body.size()) {
    std::memcpy(&window, body.data() + byte, sizeof(window));
  } else {
    std::memcpy(&window, body.data() + byte, body.size() - byte);
  }
  return window;
}

// The record of one block: rank below, signs above.
template <int k>
Window<k> MakeRecord(const uint16_t* positions, const int8_t* signs) {
  if (signs[0] == 0) return Window<k>{Binomial<k>(kBlockElements)};
  Window<k> record = Rank<k>(positions);
  for (int i = 0; i < k; ++i) record |= Window<k>{signs[i] < 0} << (kRankBits[k] + i);
  return record;
}

template <int k>
void Encode(const SignUpdate& update, char* body, uint64_t body_bytes) {
  constexpr uint64_t kBits = kRankBits[k] + k;
  const auto blocks = static_cast<uint64_t>(update.blocks());
  for (uint64_t block = 0; block < blocks; ++block) {
    const uint64_t byte = block * kBits / 8;
    const Window<k> record = MakeRecord<k>(&update.positions[block * k], &update.signs[block * k])
                             << (block * kBits % 8);
    Window<k> window = LoadWindow<k>({body, body_bytes}, byte);
    // The record before may end in the same byte.
    window |= record;
    std::memcpy(body + byte, &window, std::min<uint64_t>(sizeof(window), body_bytes - byte));
  }
}

template <int k>
struct Record {
  RankInt<k> rank;
  uint32_t negative;  // sign bits

  static constexpr RankInt<k> kEmpty = Binomial<k>(kBlockElements);
  bool valid() const { return rank < kEmpty || (rank == kEmpty && negative == 0); }
};

template <int k>
Record<k> ReadRecord(absl::string_view body, uint64_t block) {
  constexpr Window<k> kRankMask = (Window<k>{1} << kRankBits[k]) - 1;
  const uint64_t bit = block * (kRankBits[k] + k);
  const Window<k> window = LoadWindow<k>(body, bit / 8) >> (bit % 8);
  return {.rank = static_cast<RankInt<k>>(window & kRankMask),
          .negative = static_cast<uint32_t>(window >> kRankBits[k]) & ((1u << k) - 1)};
}

// The number of valid records before the first that is not.
template <int k>
uint64_t CountValid(absl::string_view body, uint64_t count) {
  uint64_t valid = 0;
  while (valid < count && ReadRecord<k>(body, valid).valid()) ++valid;
  return valid;
}

// Row n: +1 or -1 by the bits of n.
constexpr auto kSignsOfBits = [] {
  std::array<std::array<int8_t, kMaxRecordK>, 1 << kMaxRecordK> signs{};
  for (int bits = 0; bits < 1 << kMaxRecordK; ++bits) {
    for (int i = 0; i < kMaxRecordK; ++i) signs[bits][i] = (bits >> i) & 1 ? -1 : 1;
  }
  return signs;
}();

// Records that are decoded at a time.
template <int k>
constexpr int kTogether = (2 <= k && k <= 4) ? 4 : 1;

// positions [count, k]; count <= kTogether.
template <int k>
void UnrankTogether(const std::array<RankInt<k>, kTogether<k>>& ranks, int count,
                    uint16_t* positions) {
  if constexpr (kTogether<k> == 4) {
    if (count == 4) return UnrankFour<k>(ranks.data(), positions);
  }
  for (int i = 0; i < count; ++i) Unrank<k>(ranks[i], positions + i * k);
}

// The number of valid records before the first that is not; when that is `count`, all are decoded.
template <int k>
uint64_t Decode(absl::string_view body, uint64_t first, uint64_t count, uint16_t* positions,
                int8_t* signs) {
  for (uint64_t done = 0; done < count; done += kTogether<k>) {
    const int together = static_cast<int>(std::min<uint64_t>(kTogether<k>, count - done));
    std::array<RankInt<k>, kTogether<k>> ranks;
    uint32_t empty = 0;
    for (int i = 0; i < together; ++i) {
      const Record<k> record = ReadRecord<k>(body, first + done + i);
      if (!record.valid()) return done + i;
      const bool is_empty = record.rank == Record<k>::kEmpty;
      empty |= uint32_t{is_empty} << i;
      // Rank 0 stands in, so that four are decoded together; the empty ones are cleared below.
      ranks[i] = is_empty ? 0 : record.rank;
      std::memcpy(signs + i * k, kSignsOfBits[record.negative].data(), k);
    }
    UnrankTogether<k>(ranks, together, positions);
    for (; empty != 0; empty &= empty - 1) {
      const int i = std::countr_zero(empty);
      std::memset(positions + i * k, 0, k * sizeof(*positions));
      std::memset(signs + i * k, 0, k);
    }
    positions += kTogether<k> * k;
    signs += kTogether<k> * k;
  }
  return count;
}

absl::Status BadRecord(absl::string_view body, int k, uint64_t block) {
  const auto [rank, signs] = WithConstantK(k, [&](auto constant) {
    const auto record = ReadRecord<constant()>(body, block);
    return std::make_pair(uint128{record.rank}, record.negative);
  });
  const uint128 limit =
      WithConstantK(k, [](auto constant) { return uint128{Binomial<constant()>(kBlockElements)}; });
  if (rank == limit) {
    return absl::InvalidArgumentError(
        absl::StrCat("block ", block, ": the empty record has signs ", signs));
  }
  std::string text = absl::StrCat(absl::Hex(static_cast<uint64_t>(rank >> 64)), ":",
                                  absl::Hex(static_cast<uint64_t>(rank), absl::kZeroPad16));
  if (rank >> 64 == 0) text = absl::StrCat(static_cast<uint64_t>(rank));
  return absl::InvalidArgumentError(
      absl::StrCat("block ", block, ": rank ", text, " exceeds C(4096,", k, ")"));
}

}  // namespace

int RankBits(int k) { return kRankBits[k]; }

void EncodeRecords(const SignUpdate& update, std::string* body) {
  const size_t start = body->size();
  body->resize(start + RecordBodyBytes(update.blocks(), update.k));
  WithConstantK(update.k,
                [&](auto k) { Encode<k()>(update, body->data() + start, body->size() - start); });
}

absl::Status DecodeRecords(absl::string_view body, int k, uint64_t first, uint64_t count,
                           uint16_t* positions, int8_t* signs) {
  const uint64_t decoded = WithConstantK(
      k, [&](auto constant) { return Decode<constant()>(body, first, count, positions, signs); });
  return decoded == count ? absl::OkStatus() : BadRecord(body, k, first + decoded);
}

absl::Status ValidateRecords(absl::string_view body, int k, uint64_t count) {
  const uint64_t valid =
      WithConstantK(k, [&](auto constant) { return CountValid<constant()>(body, count); });
  return valid == count ? absl::OkStatus() : BadRecord(body, k, valid);
}

absl::Status CheckRecordBody(absl::string_view body, uint64_t blocks, int k) {
  if (body.size() != RecordBodyBytes(blocks, k)) {
    return absl::InvalidArgumentError(absl::StrCat("body of ", body.size(), " bytes, ", blocks,
                                                   " records of ", RecordBits(k), " bits take ",
                                                   RecordBodyBytes(blocks, k)));
  }
  const int used = static_cast<int>(blocks * RecordBits(k) % 8);
  if (used != 0 && static_cast<unsigned char>(body.back()) >> used != 0) {
    return absl::InvalidArgumentError("padding after the last record is not zero");
  }
  return absl::OkStatus();
}

}  // namespace distro
