// Decisions of operators as edits of the durable StoredAdmission, which is written before a
// decision takes effect. Pure.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/ids.h"
#include "distro/v1/store.pb.h"

namespace distro::server {

inline constexpr size_t kMaxReasonBytes = 200;

// Adds `name` to the quarantine, or replaces its reason. InvalidArgument: an invalid name, or a
// reason above kMaxReasonBytes.
absl::StatusOr<v1::StoredAdmission> WithQuarantined(v1::StoredAdmission admission,
                                                    const std::string& name,
                                                    absl::string_view reason, RoundId round);

// Removes `name` from the quarantine. NotFound: it is not in quarantine.
absl::StatusOr<v1::StoredAdmission> WithoutQuarantined(v1::StoredAdmission admission,
                                                       absl::string_view name);

// Pauses the run, or replaces the reason of the pause. InvalidArgument: a reason above
// kMaxReasonBytes.
absl::StatusOr<v1::StoredAdmission> WithPause(v1::StoredAdmission admission,
                                              absl::string_view reason);

v1::StoredAdmission WithoutPause(v1::StoredAdmission admission);

// With the run extended.
v1::StoredAdmission WithExtension(v1::StoredAdmission admission, const v1::Extension& extension);

}  // namespace distro::server
