// DISTRO_RETURN_IF_ERROR(expr) and DISTRO_ASSIGN_OR_RETURN(lhs, expr): return an absl::Status to
// the caller.
//
//   DISTRO_RETURN_IF_ERROR(file.Sync());
//   DISTRO_ASSIGN_OR_RETURN(std::string bytes, ReadFile(path));
//
// Annotate() in status_util.h names the thing that failed.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define DISTRO_STATUS_CONCAT_INNER(a, b) a##b
#define DISTRO_STATUS_CONCAT(a, b) DISTRO_STATUS_CONCAT_INNER(a, b)

#define DISTRO_RETURN_IF_ERROR(expr)                                                    \
  do {                                                                                  \
    if (absl::Status distro_status = (expr); !distro_status.ok()) return distro_status; \
  } while (false)

#define DISTRO_ASSIGN_OR_RETURN(lhs, expr) \
  DISTRO_ASSIGN_OR_RETURN_INNER(DISTRO_STATUS_CONCAT(distro_status_or_, __LINE__), lhs, expr)
#define DISTRO_ASSIGN_OR_RETURN_INNER(temporary, lhs, expr)  \
  auto temporary = (expr);                                   \
  if (!temporary.ok()) return std::move(temporary).status(); \
  lhs = *std::move(temporary)
