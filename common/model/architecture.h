// The static properties of a model: sizes, tensors, units, operations, memory. This is the half of
// the interface of architectures without Torch; worker/model/units.h is the other half
// (docs/decisions/0017). A new architecture is a folder beside llama/ and a line in the table of
// architecture.cc.
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
#include "common/layout/layout.h"
#include "common/layout/manifest.h"

namespace distro {

// What every architecture has.
struct ModelSizes {
  int hidden_size = 0;  // elements that go from unit to unit, for each position
  int layers = 0;       // units between the first and the last
  int vocab_size = 0;
  int max_positions = 0;  // of a sequence
};

// A part of a model that is computed, gathered and recomputed as a whole.
struct UnitSpec {
  std::string name;                  // for messages: "block 3"
  std::vector<std::string> tensors;  // in the order in which the unit takes its parameters
};

// How a tensor begins: normal about 0, or the same constant everywhere when `deviation` is 0.
struct InitialValues {
  float deviation = 0;
  float constant = 0;
};

// Bytes of one unit for one micro-batch. Its parameters, its input and the gradient of its output
// are not in them.
struct UnitMemory {
  int64_t output = 0;
  int64_t saved = 0;          // kept by the graph from forward to backward, without the output
  int64_t forward_peak = 0;   // most at a time in forward with a graph: with output and saved
  int64_t plain_peak = 0;     // the same without a graph
  int64_t backward_peak = 0;  // most at a time in backward: with saved and gradients, not output
  int64_t gradients = 0;      // of the parameters, in their type
};

struct ModelMemory {
  int64_t tables = 0;             // what all units share beside the tokens
  std::vector<UnitMemory> units;  // in the order of Units()
};

class Architecture {
 public:
  virtual ~Architecture() = default;
  Architecture(const Architecture&) = delete;
  Architecture& operator=(const Architecture&) = delete;

  // The architecture's name in config.json, and the key of both tables.
  absl::string_view model_type() const { return model_type_; }
  const ModelSizes& sizes() const { return sizes_; }

  // A config.json that transformers opens (4 and 5; dtype float32) and ParseModelConfig reads back
  // as the same model.
  virtual std::string ConfigJson() const = 0;

  // The trainable tensors, f32, named and shaped as in transformers, in the order of the data flow.
  virtual std::vector<TensorSpec> Tensors() const = 0;
  // In the order of the data flow; the first takes tokens, the last makes loss or logits. Every
  // tensor is in one unit or more.
  virtual std::vector<UnitSpec> Units() const = 0;
  // As transformers has them, in kind; `tensor` is one of Tensors().
  virtual InitialValues Initial(const TensorSpec& tensor) const = 0;

  // Floating-point operations of forward and backward for one token in a sequence of
  // `sequence_length` (docs/metrics.md, "Arithmetic").
  virtual double FlopsPerToken(int sequence_length) const = 0;
  // `element_bytes` of what computes: 4 (f32) or 2 (bf16). With a CPU's kernels; those of CUDA need
  // no more than some workspace beside.
  virtual ModelMemory Memory(int64_t sequences, int64_t positions, int64_t element_bytes) const = 0;

 protected:
  // `model_type` is a literal.
  Architecture(absl::string_view model_type, const ModelSizes& sizes)
      : model_type_(model_type), sizes_(sizes) {}

 private:
  const absl::string_view model_type_;
  const ModelSizes sizes_;
};

// Every architecture's key.
std::vector<absl::string_view> ModelTypes();

// The model of a Hugging Face config.json. InvalidArgument: not a JSON object, a model_type that is
// not built, or what the architecture refuses; names the key and the remedy.
absl::StatusOr<std::shared_ptr<const Architecture>> ParseModelConfig(absl::string_view json);

// Whether sequences of this length fit the model. InvalidArgument: they exceed its positions; the
// message names both keys and the remedy.
absl::Status CheckSequenceLength(uint32_t sequence_length, const ModelSizes& sizes);

// Of each unit, indices into the manifest: what shards and memory are planned by. Requires a
// manifest that holds exactly model.Tensors().
std::vector<std::vector<int>> UnitTensors(const Architecture& model, const Manifest& manifest);

// Of each tensor, whether it is a matrix inside the model, which Muon steps: of two dimensions or
// more, and neither in the first unit nor in the last, which have embedding and head. `units` as
// UnitTensors gives them.
std::vector<bool> TensorsInside(const Layout& layout, const std::vector<std::vector<int>>& units);

}  // namespace distro
