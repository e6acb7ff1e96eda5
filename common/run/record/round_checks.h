// Checks of fields that occur both in a round's header and in its Open frame. Pure functions;
// InvalidArgument names the field.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/ids.h"
#include "common/model/layout/layout.h"
#include "distro/v1/round.pb.h"
#include "google/protobuf/repeated_ptr_field.h"

namespace distro {

// Checks that clip_norm > 0, that K is in 1..4096, and what the step's method checks.
absl::Status CheckStepParameters(const v1::StepParameters& step, const Layout& layout);

// Checks that slots have distinct, valid names in ascending order, and ranges of at least 1 sample,
// less than 2^32 in total, all below `next_sample`.
absl::Status CheckSlots(const google::protobuf::RepeatedPtrField<v1::Slot>& slots,
                        uint64_t next_sample);

// Checks that ranges are ascending, neither adjacent nor overlapping, have at least 1 sample each,
// and are below `next_sample`.
absl::Status CheckUnread(const google::protobuf::RepeatedPtrField<v1::SampleRange>& unread,
                         uint64_t next_sample);

// The largest payload that a segment's result can need, of any method.
uint64_t MaxPayloadBytes(const Layout& layout, SegmentId segment);

// 1 to MaxPayloadBytes().
absl::Status CheckPayloadBytes(const Layout& layout, SegmentId segment, uint64_t payload_bytes);

}  // namespace distro
