# Language level, warnings, sanitizers, ccache. Flags that depend on the building machine's CPU are never set: kernels
# choose their instruction set at run time.
option(DISTRO_WARNINGS_AS_ERRORS "Treat compiler warnings as errors" OFF)
option(DISTRO_FUZZ "Build the libFuzzer targets (needs clang)" OFF)
set(DISTRO_SANITIZERS "" CACHE STRING "Value of -fsanitize= for the whole build")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(DISTRO_CCACHE ccache)
if(DISTRO_CCACHE)
  # Depend mode uses the compiler's own list of headers and saves preprocessing each file. Precompiled headers need the
  # relaxed checks; base_dir lets build folders share the cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${DISTRO_CCACHE})
endif()

# Private to our own targets: they do not apply to generated and third-party code.
add_library(distro_warnings INTERFACE)
set(cxx_warnings -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wno-unused-parameter)
set(cuda_warnings -Xcompiler=-Wall,-Wextra,-Wno-unused-parameter)
if(DISTRO_WARNINGS_AS_ERRORS)
  list(APPEND cxx_warnings -Werror)
  list(APPEND cuda_warnings -Werror=all-warnings)
endif()
target_compile_options(distro_warnings INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:${cxx_warnings}>" "$<$<COMPILE_LANGUAGE:CUDA>:${cuda_warnings}>")

if(DISTRO_SANITIZERS)
  add_compile_options(-fsanitize=${DISTRO_SANITIZERS} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${DISTRO_SANITIZERS})
endif()
if(DISTRO_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
