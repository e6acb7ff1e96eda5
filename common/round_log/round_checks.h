// Checks of what a round's header and its Open frame have in common. Pure functions;
// InvalidArgument names the field.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/ids.h"
#include "common/layout/layout.h"
#include "distro/v1/round.pb.h"
#include "google/protobuf/repeated_ptr_field.h"

namespace distro {

// InvalidArgument, "FIELD: WHAT".
absl::Status BadField(absl::string_view field, absl::string_view what);

// eta and eta*lambda finite and not negative, beta in 0 to below 1, clip_norm above 0, K in
// 1..4096; of deltas CheckDeltaParameters instead of the first three, which are 0.
absl::Status CheckStepParameters(const v1::StepParameters& step, const Layout& layout);

// Ascending by distinct, valid names; 1 or more samples in each range, below 2^32 in all, all below
// `next_sample`.
absl::Status CheckSlots(const google::protobuf::RepeatedPtrField<v1::Slot>& slots,
                        uint64_t next_sample);

// Ascending, neither joined nor overlapping, 1 or more samples each, all below `next_sample`.
absl::Status CheckUnread(const google::protobuf::RepeatedPtrField<v1::SampleRange>& unread,
                         uint64_t next_sample);

// The largest payload that a segment's result can need, of any method.
uint64_t MaxPayloadBytes(const Layout& layout, SegmentId segment);

// 1 to MaxPayloadBytes().
absl::Status CheckPayloadBytes(const Layout& layout, SegmentId segment, uint64_t payload_bytes);

}  // namespace distro
