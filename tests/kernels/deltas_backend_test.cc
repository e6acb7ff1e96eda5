// Every DeltaBackend as a worker uses it: several tensors between two waits, their records one
// after another, and feedback for a part of them. The CPU's must equal its functions; the others
// are compared with it.
#include "kernels/deltas_backend.h"

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/deltas_backend.h"
#include "kernels/cuda/deltas_backend.h"
#include "kernels/deltas_twin_records.h"
#include "tests/kernels/gpu_deltas.h"

namespace distro {
namespace {

using testing::Bits;
using testing::kBeta;
using testing::Round;
using testing::ShapeCase;

struct BackendCase {
  std::string name;
  std::function<std::unique_ptr<Device>()> device;
  std::function<std::unique_ptr<DeltaBackend>(Device*)> backend;
};
std::ostream& operator<<(std::ostream& out, const BackendCase& c) { return out << c.name; }

std::vector<BackendCase> AllDeltaBackends() {
  std::vector<BackendCase> cases = {
      {"cpu", MakeHostDevice, [](Device*) { return MakeCpuDeltaBackend(); }}};
  for (const testing::GpuCase& gpu : testing::AllGpus()) {
    cases.push_back({gpu.name, gpu.make, [](Device* device) {
                       return cuda::MakeGpuDeltaBackend(static_cast<cuda::Gpu*>(device));
                     }});
  }
  return cases;
}

class DeltaBackendTest : public ::testing::TestWithParam<BackendCase> {
 protected:
  void SetUp() override {
    if (device_ == nullptr) GTEST_SKIP() << "needs a GPU, and a build with DISTRO_CUDA";
    backend_ = GetParam().backend(device_.get());
  }
  template <typename T>
  TwinArray<T> Twin(const std::vector<T>& content) {
    TwinArray<T> twin = testing::TwinOf(device_.get(), content);
    twin.CopyIn();
    return twin;
  }
  template <typename T>
  T WordOf(TwinArray<T>* word) {
    word->CopyOut();
    EXPECT_TRUE(device_->Finish().ok());
    return word->host()[0];
  }
  std::vector<float> Read(TwinArray<float>* twin) {
    twin->CopyOut();
    EXPECT_TRUE(device_->Finish().ok());
    return {twin->host().begin(), twin->host().end()};
  }
  DeltaUpdate Read(TwinRecords* records) {
    records->CopyOut();
    EXPECT_TRUE(device_->Finish().ok());
    return CopyOf(records->host());
  }
  bool IsFinite(const Round& round) {
    TwinArray<float> begin = Twin(round.begin), x = Twin(round.x), error = Twin(round.error);
    TwinArray<uint32_t> found = Twin<uint32_t>({0});
    backend_->FindNotFinite(kBeta, begin.device(), x.device(), error.device(),
                            found.device().data());
    return WordOf(&found) == 0;
  }

  const std::unique_ptr<Device> device_ = GetParam().device();
  std::unique_ptr<DeltaBackend> backend_;
};
INSTANTIATE_TEST_SUITE_P(All, DeltaBackendTest, ::testing::ValuesIn(AllDeltaBackends()),
                         [](const auto& backend) { return backend.param.name; });

int64_t BlocksOf(const std::vector<ShapeCase>& shapes) {
  int64_t blocks = 0;
  for (const ShapeCase& shape : shapes) blocks += shape.matrix.Blocks();
  return blocks;
}

TEST_P(DeltaBackendTest, TensorsBetweenTwoWaitsHaveRecordsAndBuffersOfTheirOwn) {
  constexpr DeltaCompressOptions kOptions = {.beta = kBeta, .cap = 120};
  const std::vector<ShapeCase> shapes = {testing::Matrix(70, 130), testing::Vector(1),
                                         testing::Matrix(64, 64), testing::Vector(5000)};
  TwinRecords records(device_.get());
  ASSERT_TRUE(records.Resize(BlocksOf(shapes), /*k=*/8).ok());
  DeltaUpdate want{.k = 8, .positions = {}, .signs = {}, .codes = {}};
  std::deque<TwinArray<float>> arrays, errors;
  std::vector<std::vector<float>> wanted;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const MatrixShape& matrix = shapes[i].matrix;
    const Round round = testing::RandomRound(shapes[i], 10 * i);
    TwinArray<float>& begin = arrays.emplace_back(Twin(round.begin));
    TwinArray<float>& error = errors.emplace_back(Twin(round.error));
    TwinArray<float>& x = arrays.emplace_back(Twin(round.x));
    backend_->Compress(matrix, kOptions, begin.device(), x.device(), error.device(),
                       records.OnDevice({.first = want.blocks(), .count = matrix.Blocks()}));
    std::vector<float>& formed = wanted.emplace_back(round.error);
    FormDelta(kBeta, round.begin, round.x, absl::MakeSpan(formed));
    AppendLargest(matrix, formed, kOptions.cap, &want);
  }
  EXPECT_EQ(Read(&records), want);
  for (size_t i = 0; i < shapes.size(); ++i) EXPECT_EQ(Bits(Read(&errors[i])), Bits(wanted[i]));

  const DeltaResult result = testing::SomeOf(want);
  TwinArray<uint32_t> offsets = Twin(result.offsets);
  TwinArray<uint16_t> positions = Twin(result.positions);
  const SegmentDeltas on_device = {.offsets = result.offsets,
                                   .view = {.offsets = offsets.device(),
                                            .positions = positions.device(),
                                            .signs = result.signs,
                                            .levels = result.levels,
                                            .codes = result.codes}};
  TwinArray<uint64_t> returned = Twin<uint64_t>({5});
  int64_t first = 0;
  uint64_t want_returned = 5;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const MatrixShape& matrix = shapes[i].matrix;
    const int64_t left_out = matrix.Blocks() > 1 ? 1 : 0;
    const BlockRange blocks = {.first = left_out, .count = matrix.Blocks() - left_out};
    const BlockRange of_all = {.first = first + left_out, .count = blocks.count};
    backend_->Feedback(matrix, blocks, false, records.OnDevice(of_all), ViewOf(on_device, of_all),
                       errors[i].device(), returned.device().data());
    want_returned += SubtractReturned(matrix, blocks, ViewOf(want, of_all), ViewOf(result, of_all),
                                      absl::MakeSpan(wanted[i]));
    first += matrix.Blocks();
  }
  EXPECT_EQ(WordOf(&returned), want_returned);
  for (size_t i = 0; i < shapes.size(); ++i) EXPECT_EQ(Bits(Read(&errors[i])), Bits(wanted[i]));
}

// The result includes everything that was sent: exactly the rest of each block remains.
TEST_P(DeltaBackendTest, FrequenciesThatComeBackLeaveTheBuffer) {
  const ShapeCase shape = testing::Matrix(128, 64);
  const std::vector<float> zeros(shape.matrix.elements);
  TwinArray<float> begin = Twin(zeros), error = Twin(zeros);
  TwinArray<float> x =
      Twin(std::vector<float>(zeros.size(), 0.25f));  // of each block one frequency, 16
  TwinRecords records(device_.get());
  ASSERT_TRUE(records.Resize(shape.matrix.Blocks(), /*k=*/1).ok());
  for (int round = 0; round < 2; ++round) {
    backend_->Compress(shape.matrix, {.beta = 1, .cap = 255, .as_dct = true}, begin.device(),
                       x.device(), error.device(), records.OnDevice(shape.blocks));
  }
  const DeltaUpdate update = Read(&records);
  EXPECT_EQ(update.positions, std::vector<uint16_t>(2));
  EXPECT_EQ(update.signs, std::vector<int8_t>(2, -1));
  EXPECT_EQ(update.codes, std::vector<uint8_t>(2, 255)) << "M(255) is 0.47";
  TwinArray<uint32_t> offsets = Twin<uint32_t>({0, 1, 2});
  TwinArray<uint16_t> positions = Twin<uint16_t>({0, 0});
  TwinArray<uint64_t> returned = Twin<uint64_t>({0});
  backend_->Feedback(shape.matrix, shape.blocks, true, records.OnDevice(shape.blocks),
                     {.offsets = offsets.device(),
                      .positions = positions.device(),
                      .signs = {},
                      .levels = {},
                      .codes = {}},
                     error.device(), returned.device().data());
  EXPECT_EQ(WordOf(&returned), 2u);
  const double left = -2 * 0.25 + std::ldexp(static_cast<double>(kMaxScale), -44) / 64;
  for (const float e : Read(&error)) ASSERT_NEAR(e, left, 1e-6);
}

// The order of kernels/squares.h, spelled out.
std::vector<double> Squares(const std::vector<double>& x) {
  std::vector<double> pieces;
  for (size_t piece = 0; piece < x.size(); piece += 8192) {
    std::vector<double> sums(256);
    for (size_t i = piece; i < std::min(piece + 8192, x.size()); ++i) sums[i % 256] += x[i] * x[i];
    for (size_t half = 128; half > 0; half /= 2) {
      for (size_t j = 0; j < half; ++j) sums[j] += sums[j + half];
    }
    pieces.push_back(sums[0]);
  }
  return pieces;
}

// More pieces than a small device has groups.
TEST_P(DeltaBackendTest, SquaresHaveTheSameBitsEverywhere) {
  for (const int64_t elements : {1, 255, 8191, 8192, 20 * 8192 + 257}) {
    const Round round = testing::RandomRound(testing::Vector(elements), 4);
    TwinArray<float> begin = Twin(round.begin), x = Twin(round.x), error = Twin(round.error);
    TwinArray<double> moved(device_.get()), buffer(device_.get());
    for (TwinArray<double>* sums : {&moved, &buffer})
      ASSERT_TRUE(sums->Resize(PiecesOf(elements)).ok());
    backend_->SumSquares(begin.device(), x.device(), error.device(),
                         {.moved = moved.device(), .buffer = buffer.device()});
    moved.CopyOut();
    buffer.CopyOut();
    ASSERT_TRUE(device_->Finish().ok());
    std::vector<double> differences;
    for (int64_t i = 0; i < elements; ++i) differences.push_back(round.begin[i] - round.x[i]);
    EXPECT_EQ(moved.host(), Squares(differences));
    EXPECT_EQ(buffer.host(), Squares({round.error.begin(), round.error.end()}));
  }
}

TEST_P(DeltaBackendTest, FindsNonFinite) {
  const Round round = testing::RandomRound(testing::Matrix(70, 130), 3);
  EXPECT_TRUE(IsFinite(round));
  for (const size_t at : {size_t{0}, round.error.size() - 1}) {
    Round bad = round;
    bad.error[at] = testing::kNan;
    EXPECT_FALSE(IsFinite(bad));
  }
}

}  // namespace
}  // namespace distro
