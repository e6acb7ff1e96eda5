// The record codec: one fixed-size record per block, for updates with K <= 8
// (docs/payload_format.md).
//
// Record b occupies bits b*R .. b*R + R-1 of the body, least significant bit first (bit i of the
// body is bit i%8 of byte i/8): the colexicographic rank of the sorted K-set, sum over i of
// C(position[i], i+1), in RankBits(K) bits, then K sign bits in index order, 1 for -1. The rank
// C(4096, K) with zero signs is the empty record: no vote. The bits after the last record are zero.
// So one comparison validates a record, and every valid body has exactly one decoding. Pure
// functions.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/method/signs/binomial.h"
#include "common/method/signs/update.h"

namespace distro {

// ceil(log2(C(4096, k) + 1)): 13, 23, 34, 44, 54, 63, 72, 81. Requires 1 <= k <= kMaxRecordK, here
// and below.
int RankBits(int k);
inline int RecordBits(int k) { return RankBits(k) + k; }
inline uint64_t RecordBodyBytes(uint64_t blocks, int k) { return (blocks * RecordBits(k) + 7) / 8; }

// Appends the body. Requires a valid update with k <= kMaxRecordK.
void EncodeRecords(const SignUpdate& update, std::string* body);

// Decodes records first .. first+count-1 of a body of at least RecordBodyBytes(first + count, k)
// bytes.
//
//   positions  u16 [count, k]  out  ascending; 0 for the empty record
//   signs      i8  [count, k]  out  +1 or -1; 0 for the empty record
//
// InvalidArgument: a rank above C(4096, k), or an empty record with signs; names the block.
absl::Status DecodeRecords(absl::string_view body, int k, uint64_t first, uint64_t count,
                           uint16_t* positions, int8_t* signs);

// The status of DecodeRecords for the first `count` records, by one comparison each.
absl::Status ValidateRecords(absl::string_view body, int k, uint64_t count);

// InvalidArgument: the body's size is not RecordBodyBytes(blocks, k), or a bit after the last
// record is set.
absl::Status CheckRecordBody(absl::string_view body, uint64_t blocks, int k);

}  // namespace distro
