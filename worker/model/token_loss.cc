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

class ChunkedLoss : public torch::autograd::Function<ChunkedLoss> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& hidden,
                            const at::Tensor& weight, const at::Tensor& labels, int64_t rows) {
    const int64_t tokens = hidden.size(0);
    at::Tensor loss = at::zeros({}, hidden.options().dtype(at::kFloat));
    at::Tensor of_hidden = at::empty(hidden.sizes(), hidden.options());
    at::Tensor of_weight = at::zeros(weight.sizes(), weight.options().dtype(at::kFloat));
    ForEachChunk(tokens, rows, [&](int64_t first, int64_t count) {
      const at::Tensor x = hidden.narrow(0, first, count);
      const at::Tensor words = labels.narrow(0, first, count).unsqueeze(1);
      at::Tensor gradient = Logits(x, weight).log_softmax(1);
      loss += SumOfLosses(gradient, words);
      // Of the logits: (softmax - 1 at the label) / N.
      gradient.exp_();
      gradient.scatter_(1, words, gradient.gather(1, words).sub_(1));
      gradient = gradient.div_(static_cast<double>(tokens)).to(hidden.scalar_type());
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
                     int64_t rows) {
  const int64_t tokens = hidden.size(0);
  if (tokens <= rows) return at::cross_entropy_loss(Logits(hidden, weight), labels);
  if (at::GradMode::is_enabled()) return ChunkedLoss::apply(hidden, weight, labels, rows);
  at::Tensor loss = at::zeros({}, hidden.options().dtype(at::kFloat));
  ForEachChunk(tokens, rows, [&](int64_t first, int64_t count) {
    loss += SumOfLosses(Logits(hidden.narrow(0, first, count), weight).log_softmax(1),
                        labels.narrow(0, first, count).unsqueeze(1));
  });
  return loss.div_(static_cast<double>(tokens));
}

}  // namespace distro::worker
