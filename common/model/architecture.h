// The static properties of a model: sizes, tensors, units, operations, memory. This is the half of
// an architecture's interface without Torch; worker/model/units.h is the other half
// (docs/decisions/0017). A new architecture is a row of decoder/kinds.h, or, where it is no such
// decoder, a folder beside decoder/ and a line in the table of architecture.cc.
//
//   DISTRO_ASSIGN_OR_RETURN(const std::shared_ptr<const Architecture> model,
//                           ParseModelConfig(config_json));
//   DISTRO_ASSIGN_OR_RETURN(Manifest manifest, Manifest::Create(model->Tensors()));
//
// Pure, immutable, thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/layout/layout.h"
#include "common/model/layout/manifest.h"

namespace distro {

// Sizes common to all architectures.
struct ModelSizes {
  int hidden_size = 0;  // elements between units, per position
  int layers = 0;       // units between the first and the last
  int vocab_size = 0;
  int max_positions = 0;  // of one sequence
};

// A part of a model that is computed, gathered and recomputed as a whole.
struct UnitSpec {
  std::string name;                  // for messages: "block 3"
  std::vector<std::string> tensors;  // in the order in which the unit takes its parameters
};

// Initial values of a tensor: normal around 0, or `constant` everywhere if `deviation` is 0.
struct InitialValues {
  float deviation = 0;
  float constant = 0;
};

// Bytes of one unit for one micro-batch, without its parameters, its input and the gradient of its
// output.
struct UnitMemory {
  int64_t output = 0;
  int64_t saved = 0;          // kept by autograd from forward to backward; without output
  int64_t forward_peak = 0;   // peak in forward with a graph; includes output and saved
  int64_t plain_peak = 0;     // the same without a graph
  int64_t backward_peak = 0;  // peak in backward; includes saved and gradients, not output
  int64_t gradients = 0;      // of the parameters, in their type
};

struct ModelMemory {
  int64_t tables = 0;             // shared by all units, except the tokens
  std::vector<UnitMemory> units;  // in the order of Units()
};

class Architecture {
 public:
  virtual ~Architecture() = default;
  Architecture(const Architecture&) = delete;
  Architecture& operator=(const Architecture&) = delete;

  // The architecture's name in config.json, and its key in both tables.
  absl::string_view model_type() const { return model_type_; }
  const ModelSizes& sizes() const { return sizes_; }

  // A config.json that transformers 4 and 5 open (dtype float32), and from which ParseModelConfig
  // reads the same model.
  virtual std::string ConfigJson() const = 0;

  // The trainable tensors, f32, with transformers' names and shapes, in the order of the data flow.
  virtual std::vector<TensorSpec> Tensors() const = 0;
  // In the order of the data flow; the first takes tokens, the last returns loss or logits. Every
  // tensor is in at least one unit.
  virtual std::vector<UnitSpec> Units() const = 0;
  // The same distributions as in transformers; `tensor` is one of Tensors().
  virtual InitialValues Initial(const TensorSpec& tensor) const = 0;

  // Floating-point operations of forward and backward per token, in sequences of `sequence_length`
  // (docs/metrics.md, "Arithmetic").
  virtual double FlopsPerToken(int sequence_length) const = 0;
  // `element_bytes` is the compute type's size: 4 (f32) or 2 (bf16). Calculated for Torch's kernels
  // on CPUs. Those on GPUs need only some workspace more, but with `gpu` norms are computed at
  // once, without intermediate results, and logits as kLogitAlignment says.
  virtual ModelMemory Memory(int64_t sequences, int64_t positions, int64_t element_bytes,
                             bool gpu) const = 0;

 protected:
  // `model_type` is a literal.
  Architecture(absl::string_view model_type, const ModelSizes& sizes)
      : model_type_(model_type), sizes_(sizes) {}

 private:
  const absl::string_view model_type_;
  const ModelSizes sizes_;
};

// The keys of all architectures.
std::vector<absl::string_view> ModelTypes();

// The model of a Hugging Face config.json. InvalidArgument: not a JSON object, an unknown
// model_type, or refused by the architecture; names the key and the remedy.
absl::StatusOr<std::shared_ptr<const Architecture>> ParseModelConfig(absl::string_view json);

// Checks that sequences of this length fit the model. InvalidArgument: they exceed its positions;
// the message names both keys and the remedy.
absl::Status CheckSequenceLength(uint32_t sequence_length, const ModelSizes& sizes);

// The tensors of each unit, as indices into the manifest. Shards and memory are planned with them.
// Requires a manifest with exactly model.Tensors().
std::vector<std::vector<int>> UnitTensors(const Architecture& model, const Manifest& manifest);

// For each tensor, whether Muon steps it: a matrix (two dimensions or more) inside the model, in
// neither the first unit nor the last, which hold embedding and head. `units` as from UnitTensors.
std::vector<bool> TensorsInside(const Layout& layout, const std::vector<std::vector<int>>& units);

}  // namespace distro
