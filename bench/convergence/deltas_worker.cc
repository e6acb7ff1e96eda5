#include "bench/convergence/deltas_worker.h"

#include <algorithm>
#include <cmath>

#include "common/base/status_macros.h"
#include "common/method/base/learning_rate.h"
#include "common/run/sample_pool.h"

namespace distro::worker {
namespace {

void Copy(const TensorBuffer& from, TensorBuffer* to) {
  for (int i = 0; i < from.tensors(); ++i) std::ranges::copy(from.tensor(i), to->tensor(i).begin());
}

// Each row of `length` tokens.
void Reverse(size_t length, std::vector<int32_t>* tokens) {
  for (size_t first = 0; first < tokens->size(); first += length)
    std::ranges::reverse(absl::MakeSpan(*tokens).subspan(first, length));
}

}  // namespace

absl::Status DeltasWorker::GoOnFrom(const TensorBuffer& parameters) {
  Copy(parameters, &copy_);
  return lab_.settings->stateless ? rule_.Forget() : absl::OkStatus();
}

DeltasWorker::DeltasWorker(const DeltasLab* lab, int index)
    : lab_(*lab),
      index_(index),
      error_(*lab->layout),
      first_(*lab->layout),
      second_(*lab->layout),
      copy_(*lab->layout),
      end_(*lab->layout),
      gradient_(*lab->layout),
      rule_(host_.Of({.layout = lab->layout, .runs = WholeRuns(*lab->layout)}),
            InnerOf(*lab->settings, lab->config->weight_decay()), lab->tensors, lab->forms.as_dct,
            {SpansOf(&error_), SpansOf(&first_), SpansOf(&second_)}) {}

absl::Status DeltasWorker::Step(uint64_t step) {
  const uint64_t workers = lab_.config->start_workers();
  const uint64_t count = lab_.config->samples_per_worker();
  const auto sequences = static_cast<int>(count);
  DISTRO_RETURN_IF_ERROR(lab_.samples->ReadTraining(
      ConsecutiveSamples((step * workers + index_) * count, static_cast<uint32_t>(count)),
      &tokens_));
  if (index_ < lab_.settings->backwards) Reverse(lab_.config->sequence_length() + 1, &tokens_);
  DISTRO_ASSIGN_OR_RETURN(const double loss,
                          lab_.model->LossAndGradient({.tokens = tokens_, .sequences = sequences},
                                                      copy_, Accumulation::kStore, &gradient_));
  double norm = GradientNorm();
  if (!std::isfinite(loss) || !std::isfinite(norm)) return absl::OkStatus();
  if (lab_.settings->slow > 0) {
    MixSlowly(step);
    norm = GradientNorm();
  }
  return rule_.Step({.rate = LearningRate(*lab_.config, step),
                     .clip_norm = static_cast<float>(lab_.config->clip_norm())},
                    norm, SpansOf(&gradient_), SpansOf(&copy_));
}

double DeltasWorker::GradientNorm() const {
  double squares = 0;
  for (int i = 0; i < gradient_.tensors(); ++i) {
    for (const float g : gradient_.tensor(i)) squares += double{g} * double{g};
  }
  return std::sqrt(squares);
}

// g <- (1 - slow) g + slow v, with v the slow mean of the gradients.
void DeltasWorker::MixSlowly(uint64_t step) {
  if (!slow_.has_value()) slow_.emplace(*lab_.layout);
  const auto share = static_cast<float>(
      WithRate(*lab_.config, step, lab_.settings->slow, lab_.settings->slow_end));
  const auto decay = static_cast<float>(lab_.settings->slow_decay);
  std::vector<bool> mixed(gradient_.tensors(), true);
  if (lab_.settings->slow_for == "muon")
    mixed = MuonTensors(InnerOf(*lab_.settings, lab_.config->weight_decay()), lab_.tensors);
  for (int i = 0; i < gradient_.tensors(); ++i) {
    if (!mixed[i]) continue;
    const absl::Span<float> g = gradient_.tensor(i), v = slow_->tensor(i);
    for (size_t j = 0; j < g.size(); ++j) {
      v[j] = decay * v[j] + (1 - decay) * g[j];
      g[j] = (1 - share) * g[j] + share * v[j];
    }
  }
}

absl::Status DeltasWorker::Compress(const DeltaRound& round, TensorBuffer* parameters) {
  DISTRO_ASSIGN_OR_RETURN(const bool finite,
                          rule_.IsFinite(round.beta, SpansOf(parameters), SpansOf(&copy_)));
  if (!finite)
    return absl::FailedPreconditionError("the worker's copy is not finite after its inner steps");
  DISTRO_RETURN_IF_ERROR(rule_.Compress(round, SpansOf(parameters), SpansOf(&copy_)));
  const DeltasSettings& settings = *lab_.settings;
  message_ = settings.values == "bit" ? MessageOf(update())
                                      : EncodeVariant(settings, lab_.forms, rule_.error());
  if (settings.overlap > 0) Copy(copy_, &end_);
  return absl::OkStatus();
}

void DeltasWorker::FeedbackOfMessage(const DeltaMeans& returned) {
  SubtractMessage(message_, returned, lab_.forms, rule_.error());
  rule_.ForgetPending();
}

void DeltasWorker::CarryOnto(const TensorBuffer& parameters) {
  for (int i = 0; i < parameters.tensors(); ++i) {
    const absl::Span<const float> p = parameters.tensor(i);
    const absl::Span<float> x = copy_.tensor(i), end = end_.tensor(i);
    for (size_t j = 0; j < p.size(); ++j) x[j] = p[j] + (x[j] - end[j]);
  }
}

}  // namespace distro::worker
