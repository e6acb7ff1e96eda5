// Records the reloads of credentials: "FILE ok" or "FILE error".
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/auth/tokens/token_store.h"

namespace distro::testing {

class RecordingObserver final : public server::AuthObserver {
 public:
  void OnCallRefused(absl::string_view) override {}
  void OnCredentialsReloaded(absl::string_view file, bool ok) override {
    reloads.push_back(absl::StrCat(file, ok ? " ok" : " error"));
  }
  std::vector<std::string> reloads;
};

}  // namespace distro::testing
