# LibTorch from the pip wheel, without the wheel's own CMake package, which puts an old protobuf before the
# system's and rewrites CUDA flags (docs/development.md, "LibTorch").
#
# DISTRO_TORCH_DIR: a folder with include/ and lib/ of LibTorch 2.11.0. Default: the one that scripts/install_dependencies
# puts into .deps; with DISTRO_CUDA first the one of `--cuda`, with the libraries that Torch loads on a GPU; for `pip install .`
# first the PyTorch of the Python that pip is of, which the package will run with.
set(DISTRO_TORCH_DIR "" CACHE PATH "LibTorch 2.11.0 (folder with include/ and lib/)")
if(NOT DISTRO_TORCH_DIR AND NOT "$ENV{DISTRO_TORCH_DIR}" STREQUAL "")
  set(DISTRO_TORCH_DIR "$ENV{DISTRO_TORCH_DIR}" CACHE PATH "" FORCE)
endif()
if(NOT DISTRO_TORCH_DIR)
  if(SKBUILD)
    get_filename_component(torch_python "${Python_EXECUTABLE}" DIRECTORY)
    file(GLOB candidates "${torch_python}/../lib/python3.*/site-packages/torch")
  elseif(DISTRO_CUDA)
    file(GLOB candidates "${CMAKE_SOURCE_DIR}/.deps/cuda/lib/python3.*/site-packages/torch")
  endif()
  if(NOT candidates)
    file(GLOB candidates "${CMAKE_SOURCE_DIR}/.deps/python/lib/python3.*/site-packages/torch")
  endif()
  list(LENGTH candidates count)
  if(count EQUAL 1)
    set(DISTRO_TORCH_DIR "${candidates}" CACHE PATH "" FORCE)
  endif()
endif()
if(NOT EXISTS "${DISTRO_TORCH_DIR}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "LibTorch was not found in '${DISTRO_TORCH_DIR}': ${DISTRO_INSTALL_HINT}, or set DISTRO_TORCH_DIR")
endif()

# DISTRO_TORCH_VERSION: its major and minor version.
file(STRINGS "${DISTRO_TORCH_DIR}/include/torch/headeronly/version.h" lines REGEX "define TORCH_VERSION_(MAJOR|MINOR) ")
string(REGEX REPLACE "[^0-9;]" "" lines "${lines}")
list(JOIN lines "." DISTRO_TORCH_VERSION)

set(torch_include "${CMAKE_BINARY_DIR}/torch-include")  # a view of the wheel's headers without google/
file(MAKE_DIRECTORY "${torch_include}")
foreach(folder ATen c10 torch caffe2)
  file(REMOVE "${torch_include}/${folder}")
  file(CREATE_LINK "${DISTRO_TORCH_DIR}/include/${folder}" "${torch_include}/${folder}" SYMBOLIC)
endforeach()
foreach(name c10 torch_cpu)
  add_library(torchlib::so_${name} SHARED IMPORTED GLOBAL)
  set_target_properties(torchlib::so_${name} PROPERTIES
    IMPORTED_LOCATION "${DISTRO_TORCH_DIR}/lib/lib${name}.so" IMPORTED_SONAME "lib${name}.so")
endforeach()
add_library(torchlib::cpu INTERFACE IMPORTED GLOBAL)
target_include_directories(torchlib::cpu SYSTEM INTERFACE "${torch_include}" "${torch_include}/torch/csrc/api/include")
target_link_libraries(torchlib::cpu INTERFACE torchlib::so_torch_cpu torchlib::so_c10)
target_link_options(torchlib::cpu INTERFACE "LINKER:--allow-shlib-undefined")

# distro_use_torch(<target>): lets a target's sources include worker/torch/torch.h. Links distro::torch and reuses its
# precompiled header: Torch's headers cost tens of seconds a file without it.
function(distro_use_torch target)
  target_link_libraries(${target} PUBLIC distro::torch)
  distro_share_headers(${target} distro_torch)
endfunction()
