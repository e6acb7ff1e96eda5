#include "common/base/foreign_file.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_util.h"

namespace distro {
namespace {

constexpr size_t kHead = 512;             // bytes that are looked at
constexpr size_t kMaxAnswerBytes = 4096;  // of a web server's answer that is no page
constexpr size_t kShown = 60;

constexpr absl::string_view kLfs =
    "is a Git LFS pointer, not the file itself: run git lfs pull in its clone, and copy it again";
constexpr absl::string_view kPickle =
    "is a PyTorch pickle (.bin, .pt), not safetensors: load it there and save the model again "
    "(save_pretrained, or safetensors.torch.save_file)";
constexpr absl::string_view kPage =
    "is a web page (HTML), such as a login or an error: download it again, with what its server "
    "asks for";

struct Beginning {
  absl::string_view bytes;
  absl::string_view what;
};

// The first that fits.
constexpr Beginning kBeginnings[] = {
    {"version https://git-lfs.github.com/spec/", kLfs},
    {"version https://hawser.github.com/spec/", kLfs},
    {"\x80\x02", kPickle},
    {"\x80\x03", kPickle},
    {"\x80\x04", kPickle},
    {"\x80\x05", kPickle},
    {"PK\x03\x04", "is a zip archive: unpack it"},
    {"\x1f\x8b", "is compressed with gzip: decompress it (gunzip)"},
    {"\x28\xb5\x2f\xfd", "is compressed with zstd: decompress it (unzstd)"},
    {"\xfd\x37\x7a\x58\x5a", "is compressed with xz: decompress it (unxz)"},
    {"BZh", "is compressed with bzip2: decompress it (bunzip2)"},
    {"GGUF", "is a GGUF file of llama.cpp: give the model's safetensors files"},
    {"\x89HDF", "is an HDF5 file (.h5): give the model's safetensors files"},
    {"\x93NUMPY", "is a NumPy array (.npy)"},
    {"PAR1", "is a parquet file"},
    {"ARROW1", "is an Arrow file"},
    {"\xff\xfe", "is text in UTF-16: save it as UTF-8"},
    {"\xfe\xff", "is text in UTF-16: save it as UTF-8"},
};

constexpr absl::string_view kPages[] = {"<!doctype html", "<html", "<head",
                                        "<body",          "<?xml", "<error"};

// How answers begin that servers of models give instead of a file.
constexpr absl::string_view kAnswers[] = {"{\"error\"",
                                          "{\"message\"",
                                          "{\"detail\"",
                                          "entry not found",
                                          "repository not found",
                                          "not found",
                                          "404",
                                          "401",
                                          "403",
                                          "unauthorized",
                                          "forbidden",
                                          "access to ",
                                          "access denied",
                                          "invalid username",
                                          "invalid credentials"};

bool BeginsWithAny(absl::string_view text, absl::Span<const absl::string_view> beginnings) {
  return std::ranges::any_of(beginnings,
                             [&](absl::string_view each) { return absl::StartsWith(text, each); });
}

// Lower-case, without white space at the beginning and, in JSON, before the first key.
std::string Plain(absl::string_view head) {
  std::string text = absl::AsciiStrToLower(absl::StripLeadingAsciiWhitespace(head));
  if (text.empty() || text[0] != '{') return text;
  return absl::StrCat("{", absl::StripLeadingAsciiWhitespace(absl::string_view(text).substr(1)));
}

bool IsSafetensors(absl::string_view head) {
  return head.size() > 8 && head[8] == '{' && head[4] == 0 && head[5] == 0 && head[6] == 0 &&
         head[7] == 0;
}

}  // namespace

std::string ForeignFormat(absl::string_view bytes) {
  if (bytes.empty()) return "is empty: copy or download it again";
  const absl::string_view head = bytes.substr(0, kHead);
  // torch.save writes a zip archive, too.
  if (absl::StartsWith(head, "PK") && absl::StrContains(head, "data.pkl"))
    return std::string(kPickle);
  for (const Beginning& each : kBeginnings) {
    if (absl::StartsWith(head, each.bytes)) return std::string(each.what);
  }
  if (head.size() > 262 && head.substr(257, 5) == "ustar") return "is a tar archive: unpack it";
  if (head.size() >= 16 && std::ranges::all_of(head, [](char c) { return c == '\0'; }))
    return "begins with zeros, as after a copy or download that did not end: do it again";
  if (IsSafetensors(head)) return std::string(kIsSafetensors);
  const std::string plain = Plain(head);
  if (BeginsWithAny(plain, kPages)) return std::string(kPage);
  if (bytes.size() > kMaxAnswerBytes || !BeginsWithAny(plain, kAnswers)) return "";
  return absl::StrCat("is a web server's answer (\"",
                      absl::Utf8SafeCHexEscape(absl::StripAsciiWhitespace(head.substr(0, kShown))),
                      "\"), not the file: download it again, with what its server asks for");
}

bool IsLfsPointer(absl::string_view bytes) {
  return absl::StartsWith(bytes, "version https://") && ForeignFormat(bytes) == kLfs;
}

absl::Status ExplainForeign(const absl::Status& refused, absl::string_view bytes) {
  if (!absl::IsInvalidArgument(refused)) return refused;
  const std::string what = ForeignFormat(bytes);
  return what.empty() ? refused : WithMessage(refused, what);
}

}  // namespace distro
