#include "common/base/mapped_file.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/file_calls.h"
#include "common/base/status_macros.h"

namespace distro {
namespace {

// The mappings that the handler of SIGBUS knows: it may take no lock and allocate nothing. A
// process that has more at once, such as a model of many shards, does not name the others.
std::array<std::atomic<const Mapping*>, 64> known_mappings;

}  // namespace

struct Mapping {
  Mapping(const std::string& path, absl::string_view contents)
      : bytes(contents),
        line(absl::StrCat(program_invocation_short_name, ": ", path,
                          ": became shorter while it was read, or its disk failed: start again "
                          "when the file is whole\n")) {
    for (std::atomic<const Mapping*>& known : known_mappings) {
      const Mapping* none = nullptr;
      if (known.compare_exchange_strong(none, this)) return;
    }
  }
  ~Mapping() {
    for (std::atomic<const Mapping*>& known : known_mappings) {
      const Mapping* self = this;
      if (known.compare_exchange_strong(self, nullptr)) break;
    }
    if (!bytes.empty()) munmap(const_cast<char*>(bytes.data()), bytes.size());
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  bool Has(const char* place) const {
    return place >= bytes.data() && place < bytes.data() + bytes.size();
  }

  const absl::string_view bytes;
  const std::string line;
};

namespace {

void EndOnSigbus(int number, siginfo_t* info, void* /*context*/) {
  for (const std::atomic<const Mapping*>& known : known_mappings) {
    const Mapping* const mapping = known.load();
    if (mapping == nullptr || !mapping->Has(static_cast<const char*>(info->si_addr))) continue;
    (void)!write(STDERR_FILENO, mapping->line.data(), mapping->line.size());
    _exit(2);
  }
  std::signal(number, SIG_DFL);
  raise(number);
}

}  // namespace

MappedFile::MappedFile(std::unique_ptr<const Mapping> mapping) : mapping_(std::move(mapping)) {}
MappedFile::~MappedFile() = default;
MappedFile::MappedFile(MappedFile&& other) noexcept = default;
MappedFile& MappedFile::operator=(MappedFile&& other) noexcept = default;

absl::string_view MappedFile::bytes() const { return mapping_->bytes; }

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  DISTRO_ASSIGN_OR_RETURN(const FileHandle file, OpenToRead(path));
  struct stat about;
  if (fstat(file.fd(), &about) != 0) return ErrnoToStatus(errno, "stat", path);
  const auto size = static_cast<size_t>(about.st_size);
  void* data = nullptr;
  if (size > 0) data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd(), 0);
  if (data == MAP_FAILED) return ErrnoToStatus(errno, "map", path);
  return MappedFile(
      std::make_unique<const Mapping>(path, absl::string_view(static_cast<char*>(data), size)));
}

void NameTheMappedFileOnSigbus() {
  struct sigaction action = {};
  action.sa_sigaction = EndOnSigbus;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace distro
