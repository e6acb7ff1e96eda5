#include "worker/model/token_loss.h"

#include <algorithm>

namespace distro::worker {
namespace {

using torch::autograd::AutogradContext;

// Calls visit(first token, tokens) for each chunk.
template <typename Visit>
void ForEachChunk(int64_t tokens, int64_t rows, const Visit& visit) {
  for (int64_t first = 0; first < tokens; first += rows)
    visit(first, std::min(rows, tokens - first));
}

at::Tensor SumOfLosses(const at::Tensor& log_probabilities, const at::Tensor& words) {
  return log_probabilities.gather(1, words).sum().neg_();
}

bool IsAligned(int64_t words, const LogitChunks& chunks) { return words % chunks.alignment == 0; }

// [rows, words], uninitialised: rows begin at multiples of the alignment.
at::Tensor AlignedRows(int64_t rows, int64_t words, const at::TensorOptions& options,
                       const LogitChunks& chunks) {
  const int64_t pitch = (words + chunks.alignment - 1) / chunks.alignment * chunks.alignment;
  return at::empty({rows, pitch}, options).narrow(1, 0, words);
}

at::Tensor LogProbabilities(const at::Tensor& x, const at::Tensor& weight,
                            const LogitChunks& chunks) {
  const int64_t words = weight.size(0);
  if (IsAligned(words, chunks)) return Logits(x, weight).log_softmax(1);
  const at::Tensor logits = AlignedRows(x.size(0), words, x.options(), chunks);
  return logits.addmm_(x, weight.t(), /*beta=*/0, /*alpha=*/1).to(at::kFloat).log_softmax(1);
}

// The gradient of the logits as a factor of products.
at::Tensor AsFactor(const at::Tensor& gradient, const at::TensorOptions& options,
                    const LogitChunks& chunks) {
  if (IsAligned(gradient.size(1), chunks)) return gradient.to(options.dtype());
  return AlignedRows(gradient.size(0), gradient.size(1), options, chunks).copy_(gradient);
}

class ChunkedLoss : public torch::autograd::Function<ChunkedLoss> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& hidden,
                            const at::Tensor& weight, const at::Tensor& labels,
                            const LogitChunks& chunks) {
    const int64_t tokens = hidden.size(0);
    at::Tensor loss = at::zeros({}, hidden.options().dtype(at::kFloat));
    at::Tensor of_hidden = at::empty(hidden.sizes(), hidden.options());
    at::Tensor of_weight = at::zeros(weight.sizes(), weight.options().dtype(at::kFloat));
    ForEachChunk(tokens, chunks.rows, [&](int64_t first, int64_t count) {
      const at::Tensor x = hidden.narrow(0, first, count);
      const at::Tensor words = labels.narrow(0, first, count).unsqueeze(1);
      at::Tensor gradient = LogProbabilities(x, weight, chunks);
      loss += SumOfLosses(gradient, words);
      // Of the logits: (softmax - 1 at the label) / N.
      gradient.exp_();
      gradient.scatter_(1, words, gradient.gather(1, words).sub_(1));
      gradient = AsFactor(gradient.div_(static_cast<double>(tokens)), hidden.options(), chunks);
      of_hidden.narrow(0, first, count).copy_(gradient.mm(weight));
      of_weight += gradient.t().mm(x);
    });
    context->save_for_backward({of_hidden, of_weight.to(weight.scalar_type())});
    return loss.div_(static_cast<double>(tokens));
  }

  static std::vector<at::Tensor> backward(AutogradContext* context,
                                          const std::vector<at::Tensor>& upstream) {
    std::vector<at::Tensor> gradients = context->get_saved_variables();
    for (at::Tensor& gradient : gradients) gradient.mul_(upstream[0]);
    return {gradients[0], gradients[1], {}, {}};
  }
};

}  // namespace

at::Tensor Logits(const at::Tensor& hidden, const at::Tensor& weight) {
  return at::linear(hidden, weight).to(at::kFloat);
}

at::Tensor TokenLoss(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& labels,
                     const LogitChunks& chunks) {
  const int64_t tokens = hidden.size(0);
  if (tokens <= chunks.rows && IsAligned(weight.size(0), chunks))
    return at::cross_entropy_loss(Logits(hidden, weight), labels);
  if (at::GradMode::is_enabled()) return ChunkedLoss::apply(hidden, weight, labels, chunks);
  at::Tensor loss = at::zeros({}, hidden.options().dtype(at::kFloat));
  ForEachChunk(tokens, chunks.rows, [&](int64_t first, int64_t count) {
    loss += SumOfLosses(LogProbabilities(hidden.narrow(0, first, count), weight, chunks),
                        labels.narrow(0, first, count).unsqueeze(1));
  });
  return loss.div_(static_cast<double>(tokens));
}

}  // namespace distro::worker
