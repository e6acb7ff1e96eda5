// What became of this worker's part in the last rounds that gave it samples, from the records. The
// aggregator's page and alert tell the same of it (server/status/worker_problems.h). So a worker
// whose work never counts says so, and why. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>

namespace distro::worker {

// The part of a worker in a round.
enum class OwnPart {
  kCounted,      // at least one segment of its update is in the result
  kNotReady,     // the round ended before its steps
  kLate,         // the round ended before its upload
  kNotFinite,    // it abstained, because its loss or gradient was not finite
  kProbation,    // in time, but its votes do not count yet
  kAbsent,       // the record does not name it
  kOtherSender,  // the record names another process of its name
};
inline constexpr int kOwnParts = 7;

class OwnRounds {
 public:
  static constexpr size_t kWindow = 16;  // rounds that texts speak of
  static constexpr uint64_t kTold = 16;  // rounds in a row without a count after which it is told

  // Returns whether to tell now: after kTold rounds in a row that did not count, and at each
  // doubling of that number.
  bool Add(OwnPart part);

  uint64_t uncounted_in_a_row() const { return in_a_row_; }
  // "16 of its last 16 rounds did not count: 14 ended before its steps were over, 2 not finite";
  // empty while at most half of them did not.
  std::string What() const;
  // What to do about the most frequent reason; empty as What().
  std::string Remedy() const;

 private:
  std::array<int, kOwnParts> Counts() const;
  bool MostCount() const;

  std::deque<OwnPart> parts_;  // at most kWindow
  uint64_t in_a_row_ = 0;
  uint64_t next_told_ = kTold;
};

}  // namespace distro::worker
