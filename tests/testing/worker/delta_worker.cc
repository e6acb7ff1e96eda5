#include "tests/testing/worker/delta_worker.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string>

#include "absl/strings/str_join.h"
#include "common/base/random.h"
#include "common/run/run_config.h"

namespace distro::testing {
namespace {

using worker::BlockBytes;
using worker::PendingUpdate;
using worker::RunSpans;
using worker::ShardPlan;
using worker::ShardRun;

v1::RunConfig Config() {
  v1::RunConfig config;
  config.set_name("deltas");
  config.set_method(v1::METHOD_DELTAS);
  config.set_rounds(10);
  config.set_sequence_length(4);
  config.set_samples_per_worker(2);
  config.set_local_steps(2);
  config.set_kept_per_block(3);
  return *CompleteRunConfig(config);
}

v1::StepParameters StepOf(const v1::RunConfig& config, size_t tensors) {
  v1::StepParameters step;
  step.set_clip_norm(1);
  step.set_kept_per_block(config.kept_per_block());
  v1::DeltaParameters& deltas = *step.mutable_deltas();
  for (const float rate : {0.01f, 0.02f}) deltas.add_inner_rate_bits(std::bit_cast<uint32_t>(rate));
  deltas.set_outer_rate_bits(std::bit_cast<uint32_t>(1.0f));
  deltas.set_error_decay(0.5f);
  deltas.set_caps(std::string(tensors, '\xff'));
  deltas.set_as_dct(std::string((tensors + 7) / 8, '\0'));
  return step;
}

// A host has no errors.
void Must(const absl::Status& status) {
  if (!status.ok()) std::abort();
}

}  // namespace

DeltaWorker::DeltaWorker(const DecoderConfig& llama, int segment_blocks)
    : model(llama),
      layout(*Layout::Create(*Manifest::Create(model.Tensors()), segment_blocks)),
      config(Config()),
      kind(worker::RuleOf(config, &layout, model)),
      plan(*ShardPlan::Create(layout, UnitTensors(model, layout.manifest()), /*ranks=*/1)),
      step(StepOf(config, layout.tensors().size())),
      error(layout),
      first(layout),
      second(layout),
      parameters(layout),
      x(layout),
      gradient(layout) {
  for (int i = 0; i < parameters.tensors(); ++i) std::ranges::fill(parameters.tensor(i), 0.125f);
  const std::vector<ShardRun>& runs = plan.shard(0).runs;
  rule = kind.make(host.Of({.layout = &layout, .runs = runs}),
                   {SpansOf(&error), SpansOf(&first), SpansOf(&second)});
  optimizer = std::make_unique<worker::Optimizer>(
      &layout, &kind, std::vector<worker::RankRule>{{.rule = rule.get(), .runs = runs}});
}

void DeltaWorker::DrawGradient(uint64_t seed, uint64_t index) {
  uint64_t drawn = index << 32;
  for (int i = 0; i < gradient.tensors(); ++i) {
    for (float& g : gradient.tensor(i)) {
      const auto word = static_cast<int64_t>(SplitMix64(seed, drawn++) >> 40);
      g = static_cast<float>(word - (1 << 23)) * 0x1p-23f;
    }
  }
}

void DeltaWorker::TakeSteps(uint64_t seed) {
  for (int i = 0; i < x.tensors(); ++i)
    std::ranges::copy(parameters.tensor(i), x.tensor(i).begin());
  for (int index = 0; index < step.deltas().inner_rate_bits_size(); ++index) {
    DrawGradient(seed, index);
    Must(rule->TakeStep(step, index, norm, SpansOf(&gradient), SpansOf(&x)));
  }
}

std::vector<SharedBytes> DeltaWorker::TakeRound(RoundId round, uint64_t seed) {
  TakeSteps(seed);
  Must(rule->Compress(step, SpansOf(&parameters), SpansOf(&x)));
  optimizer->SetPending({.round = round, .k = static_cast<int>(step.kept_per_block())});
  return Encode();
}

std::vector<SharedBytes> DeltaWorker::Encode() const { return optimizer->Encode(/*threads=*/1); }

PendingUpdate DeltaWorker::pending() const {
  PendingUpdate update{
      .round = optimizer->pending()->round, .k = optimizer->pending()->k, .segments = {}};
  for (uint32_t i = 0; i < layout.segments(); ++i) {
    BlockBytes& segment = update.segments.emplace_back();
    for (const auto& array : optimizer->PendingPieces(SegmentId(i)))
      segment.push_back(absl::StrJoin(array, ""));
  }
  return update;
}

}  // namespace distro::testing
