#include "common/method/deltas/dense_result.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/bitmap.h"
#include "common/base/bytes.h"
#include "common/base/parallel.h"
#include "common/base/status_macros.h"
#include "common/method/codec/bit_stream.h"
#include "common/method/codec/gap_model.h"
#include "common/method/codec/prefix_code.h"
#include "common/method/deltas/dense_update.h"
#include "common/model/layout/matrix.h"

namespace distro {
namespace {

// The only numbers of a body: first * kDenseSymbols + second; each is its own symbol.
struct Pairs {
  static constexpr absl::string_view kName = "pairs";
  static constexpr int kMantissa = 8;
  static constexpr uint32_t kLargest = kDenseSymbols * kDenseSymbols - 1;
};
constexpr uint32_t kPairs = kSymbols<Pairs>;
static_assert(kPairs == Pairs::kLargest + 1);
struct DenseFormat {
  template <template <typename> class Member>
  using Of = OfKinds<Member, Pairs>;
};
using PairModel = GapModel<DenseFormat>;

absl::Status Bad(uint64_t block, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("block ", block, ": ", what));
}

}  // namespace

DenseResult DenseOf(const DeltaResult& result) {
  DenseResult dense;
  dense.codes = result.codes;
  dense.symbols.resize(result.codes.size() * kBlockElements);
  for (int64_t block = 0; block < result.blocks(); ++block) {
    uint8_t* const symbols = dense.symbols.data() + block * kBlockElements;
    for (uint32_t i = result.offsets[block]; i < result.offsets[block + 1]; ++i)
      symbols[result.positions[i]] = DenseSymbol(result.levels[i], result.signs[i] < 0);
  }
  return dense;
}

DeltaResult SparseOf(const DenseResult& result) {
  const auto absent = static_cast<size_t>(std::ranges::count(result.symbols, uint8_t{0}));
  const size_t entries = result.symbols.size() - absent;
  DeltaResult sparse;
  sparse.codes = result.codes;
  sparse.offsets.reserve(result.codes.size() + 1);
  // One more: without a branch, a position without an entry is written and then overwritten.
  sparse.positions.resize(entries + 1);
  sparse.signs.resize(entries + 1);
  sparse.levels.resize(entries + 1);
  size_t next = 0;
  for (size_t block = 0; block < result.codes.size(); ++block) {
    const uint8_t* const symbols = result.symbols.data() + block * kBlockElements;
    for (int position = 0; position < kBlockElements; ++position) {
      const int above = symbols[position] - 1;
      sparse.positions[next] = static_cast<uint16_t>(position);
      sparse.signs[next] = static_cast<int8_t>(1 - 2 * (above & 1));
      sparse.levels[next] = static_cast<uint8_t>(above >> 1);
      next += above >= 0 ? 1 : 0;
    }
    sparse.offsets.push_back(static_cast<uint32_t>(next));
  }
  sparse.positions.resize(entries);
  sparse.signs.resize(entries);
  sparse.levels.resize(entries);
  return sparse;
}

namespace {

uint32_t PairOf(const uint8_t* symbols) { return symbols[0] * kDenseSymbols + symbols[1]; }

// Adds the pairs of a block, with two counters each, so that one pair many times in a row does not
// wait for its own counter.
void CountPairs(const uint8_t* symbols, PairModel* model) {
  constexpr int kCounters = 2;
  std::array<std::array<uint32_t, kPairs>, kCounters> parts{};
  for (int i = 0; i < kBlockElements; i += 2 * kCounters) {
    for (int j = 0; j < kCounters; ++j) ++parts[j][PairOf(symbols + i + 2 * j)];
  }
  for (uint32_t pair = 0; pair < kPairs; ++pair) {
    for (const auto& part : parts) model->of<Pairs>()[pair] += part[pair];
  }
}

class PairWriter {
 public:
  explicit PairWriter(absl::Span<const CodeLength> lengths) {
    const std::vector<uint16_t> codes = PrefixCodes(lengths);
    for (uint32_t pair = 0; pair < kPairs; ++pair)
      codes_[pair] = {.bits = codes[pair],
                      .length = static_cast<uint16_t>(CodeBits(lengths[pair]))};
  }

  void Block(const uint8_t* symbols, BitWriter* writer) const {
    for (int i = 0; i < kBlockElements; i += 2) {
      const Code& code = codes_[PairOf(symbols + i)];
      writer->Write(code.bits, code.length);
    }
  }

 private:
  struct Code {
    uint16_t bits;
    uint16_t length;
  };
  std::array<Code, kPairs> codes_;
};

}  // namespace

void AppendDenseResult(const DenseResult& result, std::string* body) {
  std::vector<bool> filled(result.blocks());
  PairModel model;
  for (int64_t block = 0; block < result.blocks(); ++block) {
    const uint8_t* const symbols = result.symbols.data() + block * kBlockElements;
    filled[block] =
        std::any_of(symbols, symbols + kBlockElements, [](uint8_t s) { return s != 0; });
    if (filled[block]) CountPairs(symbols, &model);
  }
  const GapCodeLengths<DenseFormat> lengths = LengthsOf<DenseFormat>(model);
  body->append(EncodeTables<DenseFormat>(lengths));
  size_t sizes = body->size();
  body->append(4 * size_t{GroupsOf(result.codes.size())}, '\0');
  body->append(ToBitmap(filled));
  body->append(result.codes.begin(), result.codes.end());
  const PairWriter pairs(lengths.of<Pairs>());
  BitWriter writer(body);
  for (int64_t first = 0; first < result.blocks(); first += kGroupBlocks) {
    const size_t begin = body->size();
    const int64_t end = std::min<int64_t>(first + kGroupBlocks, result.blocks());
    for (int64_t block = first; block < end; ++block) {
      if (filled[block]) pairs.Block(result.symbols.data() + block * kBlockElements, &writer);
    }
    writer.AlignToByte();
    const auto size = static_cast<uint32_t>(body->size() - begin);
    std::memcpy(body->data() + sizes, &size, sizeof(size));
    sizes += sizeof(size);
  }
}

namespace {

// Reads several pairs at a time. Immutable.
class PairReader {
 public:
  // Requires lengths of a complete code, or of none.
  explicit PairReader(absl::Span<const CodeLength> lengths) {
    const std::vector<uint16_t> codes = PrefixCodes(lengths);
    for (uint32_t pair = 0; pair < kPairs; ++pair) {
      if (lengths[pair] == 0) continue;
      const int bits = CodeBits(lengths[pair]);
      for (uint32_t i = codes[pair]; i < kCodeTableSize; i += 1u << bits) {
        singles_[i] = {.first = static_cast<uint8_t>(pair / kDenseSymbols),
                       .second = static_cast<uint8_t>(pair % kDenseSymbols),
                       .bits = static_cast<uint8_t>(bits)};
      }
    }
    for (uint32_t pattern = 0; pattern < kCodeTableSize; ++pattern)
      severals_[pattern] = SeveralOf(pattern);
  }

  void Block(BitReader* bits, uint8_t* symbols) const {
    int i = 0;
    while (i + kMost <= kBlockElements) {
      const Several& several = severals_[bits->Peek() % kCodeTableSize];
      // All of them, also those that are not known yet: a constant size is one store.
      std::memcpy(symbols + i, several.symbols.data(), kMost);
      i += several.count;
      bits->Skip(several.bits);
    }
    for (; i < kBlockElements; i += 2) {
      const Single single = singles_[bits->Peek() % kCodeTableSize];
      symbols[i] = single.first;
      symbols[i + 1] = single.second;
      bits->Skip(single.bits);
    }
  }

 private:
  static constexpr int kMost = 6;  // symbols
  struct Single {
    uint8_t first = 0, second = 0;
    uint8_t bits = 0;
  };
  struct Several {
    std::array<uint8_t, kMost> symbols{};
    uint8_t count = 0;
    uint8_t bits = 0;
  };
  static_assert(sizeof(Several) == 8);

  // The pairs whose codes are whole in the next kMaxCodeLength bits: one at least.
  Several SeveralOf(uint32_t pattern) const {
    Several several;
    while (several.count < kMost) {
      const Single next = singles_[pattern >> several.bits];
      if (several.bits + next.bits > kMaxCodeLength) break;
      several.symbols[several.count++] = next.first;
      several.symbols[several.count++] = next.second;
      several.bits = static_cast<uint8_t>(several.bits + next.bits);
    }
    return several;
  }

  std::array<Single, kCodeTableSize> singles_{};
  std::array<Several, kCodeTableSize> severals_{};
};

// A body of a result, cut into its parts; borrowed.
struct DenseResultView {
  absl::string_view tables;
  GapCodeLengths<DenseFormat> lengths;
  absl::string_view filled, codes;
  std::vector<absl::string_view> groups;
};

absl::StatusOr<DenseResultView> OpenDenseResult(absl::string_view body, uint32_t blocks) {
  DenseResultView view;
  BitReader bits(body);
  DISTRO_ASSIGN_OR_RETURN(view.lengths, ReadTables<DenseFormat>(&bits));
  ByteReader reader(body);
  DISTRO_ASSIGN_OR_RETURN(view.tables, reader.ReadBytes((bits.bit() + 7) / 8, "code lengths"));
  DISTRO_ASSIGN_OR_RETURN(const absl::string_view sizes,
                          reader.ReadBytes(4 * uint64_t{GroupsOf(blocks)}, "group sizes"));
  DISTRO_ASSIGN_OR_RETURN(view.filled, reader.ReadBytes(BitmapBytes(blocks), "bitmap of blocks"));
  DISTRO_ASSIGN_OR_RETURN(view.codes, reader.ReadBytes(blocks, "scale codes"));
  for (ByteReader each(sizes); each.remaining() > 0;) {
    DISTRO_ASSIGN_OR_RETURN(const uint32_t size, each.Read<uint32_t>("group size"));
    DISTRO_ASSIGN_OR_RETURN(const absl::string_view group, reader.ReadBytes(size, "group"));
    view.groups.push_back(group);
  }
  if (reader.remaining() != 0)
    return absl::InvalidArgumentError(absl::StrCat(reader.remaining(), " bytes after the groups"));
  DISTRO_RETURN_IF_ERROR(CheckBitmapPadding(view.filled, blocks));
  return view;
}

absl::Status CheckGroupEnd(const BitReader& bits, absl::string_view group, uint32_t number) {
  const uint64_t padding = 8 * uint64_t{group.size()} - bits.bit();
  if (bits.past_end() || padding >= 8) {
    return absl::InvalidArgumentError(absl::StrCat("group ", number, " ends at bit ", bits.bit(),
                                                   " of ", group.size(), " bytes"));
  }
  if ((bits.Peek() & ((uint64_t{1} << padding) - 1)) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("group ", number, " does not end with zero bits"));
}

// Some blocks of a body.
class GroupDecoder {
 public:
  GroupDecoder(const DenseResultView& view, const PairReader& reader, DenseResult* result)
      : view_(view), reader_(reader), result_(*result) {}

  // Writes the group's symbols and adds them to `model`. InvalidArgument names the first fault.
  absl::Status Decode(uint32_t group, PairModel* model) const {
    BitReader bits(view_.groups[group]);
    const uint32_t first = group * kGroupBlocks;
    const uint32_t end =
        std::min(static_cast<uint32_t>(result_.codes.size()), first + kGroupBlocks);
    for (uint32_t block = first; block < end; ++block) {
      if (!BitOf(view_.filled, block)) {
        if (result_.codes[block] != 0) return Bad(block, "it is empty and has a scale");
        continue;
      }
      uint8_t* const symbols = result_.symbols.data() + uint64_t{block} * kBlockElements;
      reader_.Block(&bits, symbols);
      if (std::all_of(symbols, symbols + kBlockElements, [](uint8_t s) { return s == 0; }))
        return Bad(block, "it has no entry, and is not in the bitmap of empty blocks");
      CountPairs(symbols, model);
    }
    return CheckGroupEnd(bits, view_.groups[group], group);
  }

 private:
  const DenseResultView& view_;
  const PairReader& reader_;
  DenseResult& result_;
};

}  // namespace

absl::StatusOr<DenseResult> DecodeDenseResult(absl::string_view body, uint32_t blocks,
                                              int threads) {
  DISTRO_ASSIGN_OR_RETURN(const DenseResultView view, OpenDenseResult(body, blocks));
  DenseResult result;
  result.codes.assign(view.codes.begin(), view.codes.end());
  result.symbols.resize(uint64_t{blocks} * kBlockElements);
  const PairReader reader(view.lengths.of<Pairs>());
  const GroupDecoder decoder(view, reader, &result);
  std::vector<absl::Status> statuses(view.groups.size());
  std::vector<PairModel> models(view.groups.size());
  RunParallel(threads, static_cast<int64_t>(view.groups.size()), [&](int /*thread*/, int64_t i) {
    statuses[i] = decoder.Decode(static_cast<uint32_t>(i), &models[i]);
  });
  PairModel sum;
  for (size_t i = 0; i < statuses.size(); ++i) {
    // In the order of the groups: which fault is reported does not depend on the threads.
    DISTRO_RETURN_IF_ERROR(statuses[i]);
    AddModel<DenseFormat>(models[i], &sum);
  }
  if (view.tables != EncodeTables<DenseFormat>(LengthsOf<DenseFormat>(sum)))
    return absl::InvalidArgumentError("the code lengths are not those of what was decoded");
  return result;
}

}  // namespace distro
