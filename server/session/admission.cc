#include "server/session/admission.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace distro::server {
namespace {

absl::Status CheckReason(absl::string_view reason) {
  if (reason.size() <= kMaxReasonBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("reason: ", reason.size(), " bytes are above ", kMaxReasonBytes));
}

}  // namespace

absl::StatusOr<v1::StoredAdmission> WithQuarantined(v1::StoredAdmission admission,
                                                    const std::string& name,
                                                    absl::string_view reason, RoundId round) {
  DISTRO_RETURN_IF_ERROR(ValidateName(name, "name"));
  DISTRO_RETURN_IF_ERROR(CheckReason(reason));
  auto* list = admission.mutable_quarantined();
  auto it = std::ranges::lower_bound(*list, name, std::less<>(), &v1::QuarantinedWorker::name);
  const auto index = static_cast<int>(it - list->begin());
  if (it == list->end() || it->name() != name) {
    v1::QuarantinedWorker* added = list->Add();
    added->set_name(name);
    added->set_round(round.value());
    std::rotate(list->pointer_begin() + index, list->pointer_end() - 1, list->pointer_end());
  }
  list->Mutable(index)->set_reason(std::string(reason));
  return admission;
}

absl::StatusOr<v1::StoredAdmission> WithoutQuarantined(v1::StoredAdmission admission,
                                                       absl::string_view name) {
  auto* list = admission.mutable_quarantined();
  const auto it = std::ranges::find(*list, name, &v1::QuarantinedWorker::name);
  if (it == list->end())
    return absl::NotFoundError(absl::StrCat("worker ", name, ": is not in quarantine"));
  list->erase(it);
  return admission;
}

absl::StatusOr<v1::StoredAdmission> WithPause(v1::StoredAdmission admission,
                                              absl::string_view reason) {
  DISTRO_RETURN_IF_ERROR(CheckReason(reason));
  admission.set_paused(true);
  admission.set_pause_reason(std::string(reason));
  return admission;
}

v1::StoredAdmission WithExtension(v1::StoredAdmission admission, const v1::Extension& extension) {
  *admission.mutable_extension() = extension;
  return admission;
}

v1::StoredAdmission WithoutPause(v1::StoredAdmission admission) {
  admission.set_paused(false);
  admission.clear_pause_reason();
  return admission;
}

}  // namespace distro::server
