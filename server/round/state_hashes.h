// Do all replicas hold the same parameters? Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "distro/v1/round.pb.h"

namespace distro::server {

struct StateHashReport {
  uint64_t reference = 0;             // what most report, or the known truth
  std::vector<std::string> disagree;  // "name=hash", ascending by name; empty: all agree
};

// Compares the hashes that members reported. `truth`: the hash is known (round 0); otherwise the most frequent one is
// the reference, among equals the one of the first name.
StateHashReport CompareStateHashes(const v1::RoundHeader& header, std::optional<uint64_t> truth);

}  // namespace distro::server
