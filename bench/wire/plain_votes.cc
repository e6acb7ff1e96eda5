#include "bench/wire/plain_votes.h"

#include <cstdint>

#include "common/base/status_macros.h"

namespace distro {
namespace {

void Append(uint16_t number, std::string* plain) {
  plain->push_back(static_cast<char>(number & 0xFF));
  plain->push_back(static_cast<char>(number >> 8));
}

}  // namespace

void AppendPlain(const Votes& votes, std::string* plain) {
  for (int64_t block = 0; block < votes.blocks(); ++block) {
    Append(static_cast<uint16_t>(votes.offsets[block + 1] - votes.offsets[block]), plain);
    for (uint32_t i = votes.offsets[block]; i < votes.offsets[block + 1]; ++i) {
      Append(votes.positions[i], plain);
      Append(static_cast<uint16_t>(votes.values[i]), plain);
    }
  }
}

absl::StatusOr<Votes> ParsePlain(absl::string_view plain) {
  const size_t numbers = plain.size() / 2;
  const auto number = [plain](size_t i) {
    return static_cast<uint16_t>(static_cast<uint8_t>(plain[2 * i]) |
                                 static_cast<uint8_t>(plain[2 * i + 1]) << 8);
  };
  Votes votes;
  for (size_t next = 0; next < numbers;) {
    const size_t count = number(next++);
    if (count * 2 > numbers - next) return absl::InvalidArgumentError("plain votes end early");
    for (size_t i = 0; i < count; ++i, next += 2) {
      votes.positions.push_back(number(next));
      votes.values.push_back(static_cast<int16_t>(number(next + 1)));
    }
    votes.offsets.push_back(static_cast<uint32_t>(votes.positions.size()));
  }
  DISTRO_RETURN_IF_ERROR(ValidateVotes(votes, votes.blocks()));
  return votes;
}

}  // namespace distro
