# CUDA, NCCL and the CUDA part of LibTorch: only with DISTRO_CUDA (preset `cuda`), and without a GPU in the machine
# (docs/development.md, "CUDA"). Targets: torchlib::cuda, cudalib::nccl, CUDA::cudart.
#
# nvcc: CUDACXX, else the toolkit's usual folder. Architectures: machine code for 8.0 and 9.0, machine code and PTX for
# 10.0, which later cards compile when they load it.
option(DISTRO_CUDA "Build what runs on GPUs (needs the CUDA toolkit 13 and NCCL)" OFF)
if(NOT DISTRO_CUDA)
  return()
endif()

if(NOT CMAKE_CUDA_COMPILER AND "$ENV{CUDACXX}" STREQUAL "")
  find_program(DISTRO_NVCC nvcc PATHS /usr/local/cuda/bin)
  if(NOT DISTRO_NVCC)
    message(FATAL_ERROR "nvcc was not found: install the CUDA toolkit 13.0 and name its nvcc in CUDACXX, or leave DISTRO_CUDA off")
  endif()
  set(CMAKE_CUDA_COMPILER "${DISTRO_NVCC}")
endif()
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES "80-real;90-real;100" CACHE STRING "Compute capabilities")
endif()
enable_language(CUDA)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 knows no C++20 for nvcc
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)  # one runtime a process: Torch brings the same
if(DISTRO_CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${DISTRO_CCACHE})
endif()
find_package(CUDAToolkit 13.0 REQUIRED)

foreach(name torch torch_cuda c10_cuda)
  add_library(torchlib::so_${name} SHARED IMPORTED GLOBAL)
  set_target_properties(torchlib::so_${name} PROPERTIES
    IMPORTED_LOCATION "${DISTRO_TORCH_DIR}/lib/lib${name}.so" IMPORTED_SONAME "lib${name}.so")
endforeach()
# These libraries register themselves and no code refers to their symbols, so the linker must be told to keep them. libtorch.so exports
# parts of its own std::filesystem, which crash programs that use them: the system's is linked first.
add_library(torchlib::cuda INTERFACE IMPORTED GLOBAL)
target_link_libraries(torchlib::cuda INTERFACE stdc++ torchlib::cpu torchlib::so_torch torchlib::so_torch_cuda torchlib::so_c10_cuda
  CUDA::cudart)
target_link_options(torchlib::cuda INTERFACE "LINKER:--no-as-needed")

# A process must have one libnccl.so.2: the one that Torch loads, from the package beside it, else the toolkit's of the same version.
get_filename_component(torch_packages "${DISTRO_TORCH_DIR}" DIRECTORY)
find_path(DISTRO_NCCL_INCLUDE nccl.h PATHS "${torch_packages}/nvidia/nccl/include" NO_DEFAULT_PATH)
find_file(DISTRO_NCCL_LIBRARY libnccl.so.2 PATHS "${torch_packages}/nvidia/nccl/lib" NO_DEFAULT_PATH)
find_path(DISTRO_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_file(DISTRO_NCCL_LIBRARY libnccl.so.2 HINTS "${CUDAToolkit_LIBRARY_DIR}" "${CUDAToolkit_LIBRARY_ROOT}/lib64")
if(NOT DISTRO_NCCL_INCLUDE OR NOT DISTRO_NCCL_LIBRARY)
  message(FATAL_ERROR "NCCL was not found: run scripts/install_dependencies --cuda, or set DISTRO_NCCL_INCLUDE and DISTRO_NCCL_LIBRARY")
endif()
add_library(cudalib::nccl SHARED IMPORTED GLOBAL)
set_target_properties(cudalib::nccl PROPERTIES
  IMPORTED_LOCATION "${DISTRO_NCCL_LIBRARY}" IMPORTED_SONAME "libnccl.so.2")
target_include_directories(cudalib::nccl SYSTEM INTERFACE "${DISTRO_NCCL_INCLUDE}")
target_link_libraries(cudalib::nccl INTERFACE CUDA::cudart)
