// Translates a measured link into seconds a round, and says whether the other workers would wait
// for it. Pure; no gRPC here.
#pragma once

#include <cstdint>
#include <string>

#include "distro/v1/link.pb.h"
#include "nlohmann/json.hpp"

namespace distro {

// Bytes and the seconds that they took: from the first write to the last answer.
struct LinkTransfer {
  uint64_t bytes = 0;
  double seconds = 0;

  double Rate() const { return seconds > 0 ? static_cast<double>(bytes) / seconds : 0; }
};

struct LinkMeasurement {
  double round_trip_seconds = 0;  // the fastest of a few
  LinkTransfer up_alone, down_alone, up_together, down_together;
  uint64_t update_bytes = 0;  // payloads that the prediction is for
  uint64_t result_bytes = 0;
  v1::LinkNeeds needs;  // what the aggregator said; empty without a run
};

// With the slower of the rates alone and together, since a worker's upload of a round and its
// download of another overlap.
struct LinkPrediction {
  double upload_seconds = 0;  // an update, with one round trip
  double download_seconds = 0;
  // Of a round in which nothing else takes time: the longer of the two with overlap 1, their sum
  // with overlap 0.
  double exchange_seconds = 0;
  // The others' round, as the aggregator measured it; 0: not known.
  double round_seconds = 0;
  // A round takes longer with this link than it does now.
  bool straggler = false;
};

LinkPrediction PredictLink(const LinkMeasurement& measurement);

// Lines for people, without a newline at the end; the same for programs.
std::string LinkText(const LinkMeasurement& measurement);
nlohmann::json LinkJson(const LinkMeasurement& measurement);

}  // namespace distro
