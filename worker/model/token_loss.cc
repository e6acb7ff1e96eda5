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

int64_t PaddedWords(int64_t words, const LogitChunks& chunks) {
  return (words + chunks.alignment - 1) / chunks.alignment * chunks.alignment;
}

// With words of zeros up to a multiple of the alignment.
at::Tensor Padded(const at::Tensor& weight, const LogitChunks& chunks) {
  const int64_t more = PaddedWords(weight.size(0), chunks) - weight.size(0);
  return more == 0 ? weight : at::constant_pad_nd(weight, {0, 0, 0, more});
}

// Of the first `words` words of the weight.
at::Tensor LogitsOf(const at::Tensor& x, const at::Tensor& weight, int64_t words) {
  return at::linear(x, weight).narrow(1, 0, words).to(at::kFloat).contiguous();
}

// The gradient of the logits as a factor of products with a padded weight: 0 where it is padded.
at::Tensor AsFactor(const at::Tensor& gradient, const at::Tensor& weight) {
  const int64_t words = gradient.size(1), more = weight.size(0) - words;
  if (more == 0) return gradient.to(weight.scalar_type());
  const at::Tensor factor = at::empty({gradient.size(0), weight.size(0)}, weight.options());
  factor.narrow(1, 0, words).copy_(gradient);
  factor.narrow(1, words, more).zero_();
  return factor;
}

class ChunkedLoss : public torch::autograd::Function<ChunkedLoss> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& hidden,
                            const at::Tensor& weight, const at::Tensor& labels,
                            const LogitChunks& chunks) {
    const int64_t tokens = hidden.size(0), all_words = weight.size(0);
    const at::Tensor padded = Padded(weight, chunks);
    at::Tensor loss = at::zeros({}, hidden.options().dtype(at::kFloat));
    at::Tensor of_hidden = at::empty(hidden.sizes(), hidden.options());
    at::Tensor of_weight = at::zeros(weight.sizes(), weight.options().dtype(at::kFloat));
    ForEachChunk(tokens, chunks.rows, [&](int64_t first, int64_t count) {
      const at::Tensor x = hidden.narrow(0, first, count);
      const at::Tensor words = labels.narrow(0, first, count).unsqueeze(1);
      at::Tensor gradient = LogitsOf(x, padded, all_words).log_softmax(1);
      loss += SumOfLosses(gradient, words);
      // Of the logits: (softmax - 1 at the label) / N.
      gradient.exp_();
      gradient.scatter_(1, words, gradient.gather(1, words).sub_(1));
      gradient = AsFactor(gradient.div_(static_cast<double>(tokens)), padded);
      of_hidden.narrow(0, first, count).copy_(gradient.mm(padded));
      of_weight += gradient.t().mm(x).narrow(0, 0, all_words);
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
  const int64_t tokens = hidden.size(0), words = weight.size(0);
  if (tokens <= chunks.rows && words == PaddedWords(words, chunks))
    return at::cross_entropy_loss(Logits(hidden, weight), labels);
  if (at::GradMode::is_enabled()) return ChunkedLoss::apply(hidden, weight, labels, chunks);
  at::Tensor loss = at::zeros({}, hidden.options().dtype(at::kFloat));
  const at::Tensor padded = Padded(weight, chunks);
  ForEachChunk(tokens, chunks.rows, [&](int64_t first, int64_t count) {
    const at::Tensor logits = LogitsOf(hidden.narrow(0, first, count), padded, words);
    loss += SumOfLosses(logits.log_softmax(1), labels.narrow(0, first, count).unsqueeze(1));
  });
  return loss.div_(static_cast<double>(tokens));
}

}  // namespace distro::worker
