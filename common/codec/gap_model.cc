#include "common/codec/gap_model.h"

namespace distro {

GapCodeLengths LengthsOf(const GapModel& model) {
  GapCodeLengths lengths;
  lengths.counts = CodeLengths(model.counts);
  for (int c = 1; c < kCountClasses; ++c) lengths.entries[c] = CodeLengths(model.entries[c]);
  lengths.magnitudes = CodeLengths(model.magnitudes);
  return lengths;
}

std::string EncodeTables(const GapCodeLengths& lengths) {
  std::string bytes;
  BitWriter writer(&bytes);
  WriteCodeLengths(lengths.counts, &writer);
  for (int c = 1; c < kCountClasses; ++c) WriteCodeLengths(lengths.entries[c], &writer);
  WriteCodeLengths(lengths.magnitudes, &writer);
  writer.AlignToByte();
  return bytes;
}

}  // namespace distro
