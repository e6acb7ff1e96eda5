#include "kernels/backend.h"

#include "kernels/block_site.h"

namespace distro {

void CheckMomentum(int k, const TensorMomentum& tensor) {
  CheckBlocks(tensor.matrix, tensor.blocks, tensor.momentum.size());
  CheckShape(tensor.gradient.size() == tensor.momentum.size(),
             "gradient and momentum differ in size");
  CheckSparse(tensor.blocks, k, tensor.positions.size(), tensor.values.size());
}

}  // namespace distro
