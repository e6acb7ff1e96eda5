// The fast CPU backends, one a vector width, and which of them this CPU can run.
#pragma once

#include <memory>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/vector_kernels.h"

namespace distro {

std::unique_ptr<Backend> MakeVectorBackend(const VectorKernels& kernels);

// Never empty; narrowest first. MakeCpuBackend takes the last.
std::vector<VectorKernels> SupportedVectorKernels();

// Backend::SumOfSquares and RowSumsOfSquares with several block rows in flight.
double SumOfSquaresInterleaved(const MatrixShape& matrix, absl::Span<const float> gradient);
void RowSumsOfSquaresInterleaved(const MatrixShape& matrix, absl::Span<const float> gradient,
                                 absl::Span<double> sums);

}  // namespace distro
