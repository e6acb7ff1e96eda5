#include "common/method/deltas/dense_update.h"

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace distro {

void AppendDenseUpdate(const DeltaUpdate& update, std::string* body) {
  std::vector<bool> filled(update.blocks());
  for (int64_t block = 0; block < update.blocks(); ++block) filled[block] = !update.empty(block);
  body->append(ToBitmap(filled));
  body->append(update.codes.begin(), update.codes.end());
  const size_t begin = body->size();
  body->resize(begin + update.signs.size() / 8);
  char* const bytes = body->data() + begin;
  for (size_t i = 0; i < update.signs.size(); i += 8) {
    unsigned byte = 0;
    for (size_t bit = 0; bit < 8; ++bit)
      byte |= (static_cast<uint8_t>(update.signs[i + bit]) >> 7u) << bit;
    bytes[i / 8] = static_cast<char>(byte);
  }
}

absl::StatusOr<DenseUpdate> DenseUpdate::Open(absl::string_view body, uint32_t blocks) {
  if (body.size() != DenseUpdateBytes(blocks)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a body of ", body.size(), " bytes, expected ", DenseUpdateBytes(blocks)));
  }
  DenseUpdate update;
  update.filled_ = body.substr(0, BitmapBytes(blocks));
  update.codes_ = body.substr(update.filled_.size(), blocks);
  update.signs_ = body.substr(update.filled_.size() + blocks);
  DISTRO_RETURN_IF_ERROR(update.Check());
  return update;
}

absl::Status DenseUpdate::Check() const {
  DISTRO_RETURN_IF_ERROR(CheckBitmapPadding(filled_, blocks()));
  for (uint32_t block = 0; block < blocks(); ++block) {
    if (!empty(block)) continue;
    const bool no_sign = std::ranges::all_of(SignsOf(block), [](char byte) { return byte == 0; });
    if (code(block) != 0 || !no_sign) {
      return absl::InvalidArgumentError(
          absl::StrCat("block ", block, ": an empty record is not all 0"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckBitmapPadding(absl::string_view bitmap, uint32_t bits) {
  for (size_t i = bits; i < 8 * bitmap.size(); ++i) {
    if (BitOf(bitmap, i))
      return absl::InvalidArgumentError("the bitmap of blocks does not end with zero bits");
  }
  return absl::OkStatus();
}

}  // namespace distro
