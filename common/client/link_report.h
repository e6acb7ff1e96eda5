// Translates a measured link into seconds per round, and tells whether it would delay the other
// workers. Pure; no gRPC here.
#pragma once

#include <cstdint>
#include <string>

#include "distro/v1/link.pb.h"
#include "nlohmann/json.hpp"

namespace distro {

// Bytes, and the seconds from the first write to the last answer.
struct LinkTransfer {
  uint64_t bytes = 0;
  double seconds = 0;

  double Rate() const { return seconds > 0 ? static_cast<double>(bytes) / seconds : 0; }
};

struct LinkMeasurement {
  double round_trip_seconds = 0;  // the fastest of a few
  LinkTransfer up_alone, down_alone, up_together, down_together;
  uint64_t update_bytes = 0;  // payload sizes of the prediction
  uint64_t result_bytes = 0;
  v1::LinkNeeds needs;  // from the aggregator; empty without a run
};

// Predicted with the lower of the rates alone and together, because a worker's upload of one round
// overlaps its download of another.
struct LinkPrediction {
  double upload_seconds = 0;  // of an update, with one round trip
  double download_seconds = 0;
  // Seconds of a round without compute: the longer of the two with overlap 1, their sum with
  // overlap 0.
  double exchange_seconds = 0;
  // Seconds of the other workers' round, measured by the aggregator; 0: not known.
  double round_seconds = 0;
  // With this link a round would take longer than it does now.
  bool straggler = false;
};

LinkPrediction PredictLink(const LinkMeasurement& measurement);

// One line per fact, for people, without a newline at the end; and the same as JSON.
std::string LinkText(const LinkMeasurement& measurement);
nlohmann::json LinkJson(const LinkMeasurement& measurement);

}  // namespace distro
