#include "common/model/checkpoint/safetensors_header.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/utf8.h"
#include "nlohmann/json.hpp"

namespace distro {
namespace {

using nlohmann::json;

constexpr absl::string_view kMetadata = "__metadata__";
constexpr size_t kMaxDimensions = 64;
constexpr size_t kMaxNameBytes = 512;  // as in a manifest
constexpr uint64_t kMaxCount = INT64_MAX;

// Text from an untrusted file, for a message: short and without control characters.
std::string Shown(absl::string_view text) { return ShownText(text, 200); }

// Bits per element; 0 if the format has no such dtype.
int BitsOf(absl::string_view dtype) {
  static constexpr std::pair<absl::string_view, int> kBits[] = {
      {"BOOL", 8}, {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
      {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"I16", 16},
      {"U16", 16}, {"F16", 16},    {"BF16", 16},   {"I32", 32},    {"U32", 32},
      {"F32", 32}, {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64}};
  for (const auto& [name, bits] : kBits) {
    if (name == dtype) return bits;
  }
  return 0;
}

// InvalidArgument unless end - begin is the size given by shape and dtype; never overflows.
absl::Status CheckSize(const SafetensorsEntry& entry) {
  const auto fail = [&](absl::string_view reason, absl::string_view what) {
    return SafetensorsError(reason, absl::StrCat("tensor ", Shown(entry.name), ": ", what));
  };
  const int bits = BitsOf(entry.dtype);
  if (bits == 0)
    return fail("dtype", absl::StrCat(Shown(entry.dtype), " is not a dtype of the format"));
  uint64_t size = bits;
  for (int64_t dimension : entry.shape) {
    if (__builtin_mul_overflow(size, static_cast<uint64_t>(dimension), &size) || size > kMaxCount) {
      return fail("shape", "more elements than can be counted");
    }
  }
  if (entry.begin > entry.end) return fail("offsets", "the data ends before it begins");
  if (size % 8 != 0 || size / 8 != entry.end - entry.begin) {
    return fail("shape", absl::StrCat("dtype and shape make ", size, " bits, data_offsets ",
                                      entry.end - entry.begin, " bytes"));
  }
  return absl::OkStatus();
}

// Depth 1 is the header, 2 a tensor or the metadata, 3 a shape or offsets.
class HeaderHandler final : public nlohmann::json_sax<json> {
 public:
  absl::Status status() const { return status_; }
  SafetensorsHeader TakeHeader() { return std::move(header_); }

  bool null() override { return Misplaced("null"); }
  bool boolean(bool) override { return Misplaced("a boolean"); }
  bool number_integer(int64_t) override { return Misplaced("a negative number"); }
  bool number_float(double, const std::string&) override {
    return Misplaced("a number that is not a count");
  }
  bool binary(json::binary_t&) override { return Misplaced("binary"); }

  bool number_unsigned(uint64_t value) override {
    if (depth_ != 3 || value > kMaxCount) return Misplaced(absl::StrCat("the number ", value));
    numbers_.push_back(value);
    return numbers_.size() <= kMaxDimensions ||
           Refuse(absl::StrCat("more than ", kMaxDimensions, " numbers"));
  }

  bool string(std::string& text) override {
    if (depth_ == 2 && in_metadata_) {
      header_.metadata[field_] = text;
    } else if (depth_ == 2 && field_ == "dtype") {
      entry_.dtype = text;
    } else {
      return Misplaced("a string");
    }
    return true;
  }

  bool key(std::string& name) override {
    if (depth_ == 1) return StartEntry(name);
    field_ = name;
    const bool known = in_metadata_ || name == "dtype" || name == "shape" || name == "data_offsets";
    if (!known)
      return Fail("fields", absl::StrCat(Where(), "the key is not dtype, shape or data_offsets"));
    return fields_.insert(name).second ||
           Fail("duplicate", absl::StrCat(Where(), "the key occurs twice"));
  }

  bool start_object(size_t) override {
    if (depth_ >= 2) return Misplaced("an object");
    ++depth_;
    return true;
  }
  bool end_object() override { return --depth_ == 0 || in_metadata_ || EndEntry(); }

  bool start_array(size_t) override {
    if (depth_ != 2 || in_metadata_ || field_ == "dtype") return Misplaced("an array");
    ++depth_;
    numbers_.clear();
    return true;
  }

  bool end_array() override {
    --depth_;
    if (field_ == "shape") {
      entry_.shape.assign(numbers_.begin(), numbers_.end());
    } else if (numbers_.size() != 2) {
      return Refuse("is not a pair of numbers");
    } else {
      entry_.begin = numbers_[0];
      entry_.end = numbers_[1];
    }
    return true;
  }

  bool parse_error(size_t position, const std::string&, const json::exception& error) override {
    return Fail("json", absl::StrCat("header byte ", position, ": ", Shown(error.what())));
  }

 private:
  bool StartEntry(const std::string& name) {
    if (name.empty() || name.size() > kMaxNameBytes) {
      return Fail("name", absl::StrCat("a tensor's name has ", name.size(),
                                       " bytes, allowed are 1 to ", kMaxNameBytes));
    }
    if (!names_.insert(name).second)
      return Fail("duplicate", absl::StrCat("tensor ", Shown(name), " occurs twice"));
    in_metadata_ = name == kMetadata;
    entry_ = {.name = name, .dtype = {}, .shape = {}};
    fields_.clear();
    field_.clear();
    return true;
  }

  bool EndEntry() {
    if (fields_.size() != 3) {
      return Fail("fields", absl::StrCat("tensor ", Shown(entry_.name),
                                         ": needs dtype, shape and data_offsets"));
    }
    status_ = CheckSize(entry_);
    header_.entries.push_back(std::move(entry_));
    return status_.ok();
  }

  std::string Where() const {
    const std::string name =
        in_metadata_ ? "metadata" : absl::StrCat("tensor ", Shown(entry_.name));
    return depth_ < 2 ? absl::StrCat(name, ": ") : absl::StrCat(name, ": ", Shown(field_), ": ");
  }
  // A value whose type the format does not allow here.
  bool Misplaced(absl::string_view what) { return Refuse(absl::StrCat("holds ", what)); }
  bool Refuse(absl::string_view what) {
    const absl::string_view reason = in_metadata_               ? "metadata"
                                     : depth_ < 2               ? "fields"
                                     : field_ == "data_offsets" ? "offsets"
                                                                : absl::string_view(field_);
    return Fail(reason, absl::StrCat(Where(), what));
  }
  bool Fail(absl::string_view reason, absl::string_view what) {
    status_ = SafetensorsError(reason, what);
    return false;
  }

  SafetensorsHeader header_;
  std::set<std::string> names_;
  int depth_ = 0;
  bool in_metadata_ = false;
  SafetensorsEntry entry_;
  std::set<std::string> fields_;  // keys of the object at depth 2
  std::string field_;             // the last of them
  std::vector<uint64_t> numbers_;
  absl::Status status_;
};

}  // namespace

absl::Status SafetensorsError(absl::string_view reason, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(reason, ": ", what));
}

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view text) {
  if (text.empty() || text[0] != '{')
    return SafetensorsError("json", "the header does not begin with {");
  // nlohmann-json takes a zero byte for the end of the text.
  if (const size_t zero = text.find('\0'); zero != absl::string_view::npos) {
    return SafetensorsError("json", absl::StrCat("header byte ", zero, " is zero"));
  }
  HeaderHandler handler;
  if (!json::sax_parse(text.begin(), text.end(), &handler)) return handler.status();
  return handler.TakeHeader();
}

}  // namespace distro
