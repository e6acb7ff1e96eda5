#include "tools/distroctl/report.h"

#include <ostream>

#include "common/base/json.h"
#include "common/base/status_macros.h"

namespace distro::tools {

absl::StatusOr<int> Console::Show(const absl::StatusOr<Report>& report) const {
  DISTRO_RETURN_IF_ERROR(report.status());
  if (json()) {
    *out << WriteJson(report->json);
  } else {
    *out << report->text << "\n";
  }
  out->flush();
  DISTRO_RETURN_IF_ERROR(report->verdict);
  return 0;
}

}  // namespace distro::tools
