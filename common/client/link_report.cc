#include "common/client/link_report.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/net/wire/proto_time.h"

namespace distro {
namespace {

double SlowerRate(const LinkTransfer& alone, const LinkTransfer& together) {
  if (together.bytes == 0) return alone.Rate();
  return std::min(alone.Rate(), together.Rate());
}

double Seconds(uint64_t bytes, double rate) {
  if (bytes == 0) return 0;
  return rate > 0 ? static_cast<double>(bytes) / rate : std::numeric_limits<double>::infinity();
}

std::string Line(const char* name, const LinkTransfer& transfer) {
  return absl::StrFormat("%-24s%9.2f Mbit/s  (%.3f MB in %.3f s)\n", name, 8e-6 * transfer.Rate(),
                         1e-6 * static_cast<double>(transfer.bytes), transfer.seconds);
}

std::string Verdict(const LinkMeasurement& measurement, const LinkPrediction& prediction) {
  if (prediction.round_seconds == 0) return "no round has closed yet: nothing to compare with";
  return absl::StrFormat(
      "the run's rounds take %.3f s with %d active workers: %s", prediction.round_seconds,
      measurement.needs.workers(),
      prediction.straggler ? "this link would be the straggler" : "this link keeps up");
}

nlohmann::json TransferJson(const LinkTransfer& transfer) {
  return {{"bytes", transfer.bytes},
          {"seconds", transfer.seconds},
          {"bytes_per_second", transfer.Rate()}};
}

}  // namespace

LinkPrediction PredictLink(const LinkMeasurement& measurement) {
  LinkPrediction prediction;
  const v1::LinkNeeds& needs = measurement.needs;
  prediction.upload_seconds =
      measurement.round_trip_seconds +
      Seconds(measurement.update_bytes, SlowerRate(measurement.up_alone, measurement.up_together));
  prediction.download_seconds =
      measurement.round_trip_seconds +
      Seconds(measurement.result_bytes,
              SlowerRate(measurement.down_alone, measurement.down_together));
  const bool overlaps = needs.update_bytes() == 0 || needs.overlap() > 0;
  prediction.exchange_seconds =
      overlaps ? std::max(prediction.upload_seconds, prediction.download_seconds)
               : prediction.upload_seconds + prediction.download_seconds;
  prediction.round_seconds = absl::ToDoubleSeconds(FromProto(needs.round_duration()));
  prediction.straggler =
      prediction.round_seconds > 0 && prediction.exchange_seconds > prediction.round_seconds;
  return prediction;
}

std::string LinkText(const LinkMeasurement& measurement) {
  const LinkPrediction prediction = PredictLink(measurement);
  return absl::StrCat(
      absl::StrFormat("%-24s%9.2f ms\n", "round trip", 1e3 * measurement.round_trip_seconds),
      Line("up alone", measurement.up_alone), Line("down alone", measurement.down_alone),
      Line("up, with down", measurement.up_together),
      Line("down, with up", measurement.down_together),
      absl::StrFormat("%-24s%9.3f s for %.3f MB\n", "upload of an update",
                      prediction.upload_seconds,
                      1e-6 * static_cast<double>(measurement.update_bytes)),
      absl::StrFormat("%-24s%9.3f s for %.3f MB\n", "download of a result",
                      prediction.download_seconds,
                      1e-6 * static_cast<double>(measurement.result_bytes)),
      absl::StrFormat("%-24s%9.3f s at least\n", "a round on this link",
                      prediction.exchange_seconds),
      Verdict(measurement, prediction));
}

nlohmann::json LinkJson(const LinkMeasurement& measurement) {
  const LinkPrediction prediction = PredictLink(measurement);
  nlohmann::json json = {{"round_trip_seconds", measurement.round_trip_seconds},
                         {"up_alone", TransferJson(measurement.up_alone)},
                         {"down_alone", TransferJson(measurement.down_alone)},
                         {"up_together", TransferJson(measurement.up_together)},
                         {"down_together", TransferJson(measurement.down_together)},
                         {"update_bytes", measurement.update_bytes},
                         {"result_bytes", measurement.result_bytes},
                         {"upload_seconds", prediction.upload_seconds},
                         {"download_seconds", prediction.download_seconds},
                         {"exchange_seconds", prediction.exchange_seconds},
                         {"straggler", prediction.straggler}};
  if (prediction.round_seconds > 0) {
    json["round_seconds"] = prediction.round_seconds;
    json["workers"] = measurement.needs.workers();
  }
  return json;
}

}  // namespace distro
