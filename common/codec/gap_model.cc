#include "common/codec/gap_model.h"

#include <algorithm>

namespace distro {

GapCodeLengths LengthsOf(const GapModel& model) {
  GapCodeLengths result;
  result.ForEach(
      [](absl::string_view, auto& lengths, const auto& counts) {
        const std::vector<CodeLength> optimal = CodeLengths(counts);
        std::copy(optimal.begin(), optimal.end(), lengths.begin());
      },
      model);
  return result;
}

std::string EncodeTables(const GapCodeLengths& lengths) {
  std::string bytes;
  BitWriter writer(&bytes);
  GapCodeLengths copy = lengths;
  copy.ForEach(
      [&](absl::string_view, const auto& alphabet) { WriteCodeLengths(alphabet, &writer); });
  writer.AlignToByte();
  return bytes;
}

absl::StatusOr<GapCodeLengths> ReadTables(BitReader* reader) {
  GapCodeLengths lengths;
  absl::Status status;
  lengths.ForEach([&](absl::string_view name, auto& alphabet) {
    if (status.ok()) status = ReadCodeLengths(reader, name, absl::MakeSpan(alphabet));
  });
  if (!status.ok()) return status;
  return lengths;
}

}  // namespace distro
