// CUDA's stream, without its headers.
#pragma once

struct CUstream_st;  // cudaStream_t is a pointer to it

namespace distro::cuda {

using Stream = CUstream_st*;

}  // namespace distro::cuda
