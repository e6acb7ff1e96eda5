# distro_library(NAME base SRCS ... HDRS ... DEPS ... PRIVATE_DEPS ...)   target distro_<name>, alias distro::<name>
# distro_executable(NAME distroctl SRCS ... DEPS ...)
# distro_test(NAME codec_test SRCS ... DEPS ...)    one binary, one ctest entry; runs in the test folder of the build
# distro_command_test(NAME processes_test COMMAND ... WORKING_DIRECTORY ...)   one ctest entry, add_test with file names (no
#     target names); with sanitizers it also fails if any program that it started, directly or not, wrote a report
# distro_benchmark(NAME codec_benchmark SRCS ... DEPS ...)
# distro_fuzz_target(NAME payload_fuzz SRCS ... DEPS ...)   only with DISTRO_FUZZ; one ctest entry with the label fuzz
#     that runs it for 10 s; seeds, if any, are in tests/fuzz/corpus/<name>
# distro_use_grpc(<target>)    for a target whose sources include gRPC: links distro::proto_grpc, shares its
#     precompiled header (distro_use_torch is in DistroTorch.cmake)
#
# Includes are written from the root of the source tree.
function(distro_library)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME" "SRCS;HDRS;DEPS;PRIVATE_DEPS")
  set(target distro_${ARG_NAME})
  if(ARG_SRCS)
    add_library(${target} STATIC ${ARG_SRCS} ${ARG_HDRS})
    target_include_directories(${target} PUBLIC "${CMAKE_SOURCE_DIR}")
    target_link_libraries(${target} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS} distro_warnings)
    distro_share_usual_headers_later(${target})
  else()
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE "${CMAKE_SOURCE_DIR}")
    target_link_libraries(${target} INTERFACE ${ARG_DEPS})
  endif()
  add_library(distro::${ARG_NAME} ALIAS ${target})
endfunction()

# The settings common to all our programs.
function(distro_program target srcs deps)
  add_executable(${target} ${srcs})
  target_include_directories(${target} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${target} PRIVATE ${deps} distro_warnings)
  distro_share_usual_headers_later(${target})
  if(TARGET distro_tsan)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:distro_tsan>)
    target_link_libraries(${target} PRIVATE absl::status absl::synchronization)
  endif()
  if(TARGET distro_asan)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:distro_asan>)
  endif()
endfunction()

if("thread" IN_LIST DISTRO_SANITIZERS)
  add_library(distro_tsan OBJECT "${CMAKE_SOURCE_DIR}/cmake/tsan_abseil.cc" "${CMAKE_SOURCE_DIR}/cmake/tsan_grpc.cc"
              "${CMAKE_SOURCE_DIR}/cmake/tsan_grpcpp.cc")
  target_link_libraries(distro_tsan PRIVATE absl::status absl::synchronization gRPC::grpc distro_warnings)
endif()

if(DISTRO_SANITIZERS MATCHES "address")
  add_library(distro_asan OBJECT "${CMAKE_SOURCE_DIR}/cmake/asan_leaks.cc")
  target_link_libraries(distro_asan PRIVATE distro_warnings)
endif()

function(distro_executable)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME" "SRCS;DEPS")
  distro_program(${ARG_NAME} "${ARG_SRCS}" "${ARG_DEPS}")
  set_target_properties(${ARG_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
endfunction()

function(distro_command_test)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME;WORKING_DIRECTORY" "COMMAND")
  if(DISTRO_SANITIZERS)
    list(PREPEND ARG_COMMAND "${CMAKE_SOURCE_DIR}/cmake/run_sanitized" "${CMAKE_BINARY_DIR}/sanitizer_reports/${ARG_NAME}")
  endif()
  if(NOT ARG_WORKING_DIRECTORY)
    set(ARG_WORKING_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}")
  endif()
  add_test(NAME ${ARG_NAME} COMMAND ${ARG_COMMAND} WORKING_DIRECTORY "${ARG_WORKING_DIRECTORY}")
endfunction()

function(distro_test)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME" "SRCS;DEPS;ARGS")
  distro_program(${ARG_NAME} "${ARG_SRCS}" "${ARG_DEPS};GTest::gmock;GTest::gtest")
  if(NOT "distro::golden_main" IN_LIST ARG_DEPS)
    target_link_libraries(${ARG_NAME} PRIVATE GTest::gtest_main)
  endif()
  distro_command_test(NAME ${ARG_NAME} COMMAND $<TARGET_FILE:${ARG_NAME}> ${ARG_ARGS})
  set_tests_properties(${ARG_NAME} PROPERTIES TIMEOUT 600)
endfunction()

function(distro_benchmark)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME" "SRCS;DEPS")
  distro_program(${ARG_NAME} "${ARG_SRCS}" "${ARG_DEPS};benchmark::benchmark")
endfunction()

add_custom_target(fuzz_targets)
function(distro_fuzz_target)
  if(NOT DISTRO_FUZZ)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME" "SRCS;DEPS")
  distro_program(${ARG_NAME} "${ARG_SRCS}" "${ARG_DEPS}")
  target_link_options(${ARG_NAME} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzz_targets ${ARG_NAME})
  # libFuzzer writes its findings to the first folder, in the build tree; it only reads the seeds.
  set(found "${CMAKE_CURRENT_BINARY_DIR}/corpus/${ARG_NAME}")
  set(seeds "${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${ARG_NAME}")
  if(NOT EXISTS "${seeds}")
    set(seeds "")
  endif()
  file(MAKE_DIRECTORY "${found}")
  add_test(NAME ${ARG_NAME} COMMAND ${ARG_NAME} -max_total_time=10 -timeout=5 -rss_limit_mb=2048 "${found}"
    ${seeds})
  set_tests_properties(${ARG_NAME} PROPERTIES TIMEOUT 120 LABELS fuzz)
endfunction()

# Precompiled headers. Each has an owner, a target that compiles it; others share the owner's:
#   distro_proto         std, Abseil, protobuf, our messages      every target without another one below
#   distro_proto_grpc    the same and gRPC with our services      distro_use_grpc
#   distro_torch         worker/torch/torch.h                     distro_use_torch
#   distro_test_headers  as gRPC's and GoogleTest                 every target in tests/ without Torch
set(DISTRO_COMMON_HEADERS
  <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <filesystem> <fstream> <functional> <limits> <map> <memory> <numeric>
  <optional> <set> <sstream> <string> <string_view> <thread> <unordered_map> <utility> <variant> <vector>
  <absl/functional/any_invocable.h> <absl/status/status.h> <absl/status/statusor.h> <absl/strings/str_cat.h>
  <absl/strings/str_format.h> <absl/strings/str_join.h> <absl/strings/str_split.h> <absl/synchronization/mutex.h>
  <absl/time/clock.h> <absl/time/time.h> <absl/types/span.h>
  <google/protobuf/map.h> <google/protobuf/message.h> <google/protobuf/repeated_field.h>)
set(DISTRO_GRPC_HEADERS
  <grpcpp/grpcpp.h> <grpcpp/generic/async_generic_service.h> <grpcpp/impl/codegen/proto_utils.h>
  <grpcpp/support/client_callback.h> <grpcpp/support/server_callback.h>)

# GCC uses a precompiled header only if the code generation flags and the predefined macros are equal. So a program that
# shares one with libraries is compiled with -fPIC like them, not with -fPIE; code without threads is compiled with
# -pthread; and generated code with -Wpedantic, which removes a macro, like our own.
function(distro_match_pch_flags target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-fPIC;-pthread;-Wpedantic>")
endfunction()

# Makes `target` the owner of a precompiled header. Headers are given by name: with paths of this checkout, ccache could not
# share results with other checkouts.
function(distro_own_headers target)
  target_precompile_headers(${target} PRIVATE ${ARGN})
  distro_match_pch_flags(${target})
endfunction()

function(distro_share_headers target owner)
  target_precompile_headers(${target} REUSE_FROM ${owner})
  distro_match_pch_flags(${target})
endfunction()

function(distro_use_grpc target)
  target_link_libraries(${target} PUBLIC distro::proto_grpc)
  if(NOT DISTRO_IN_TESTS)
    distro_share_headers(${target} distro_proto_grpc)
  endif()
endfunction()

# The flags common to the owner of the tests' header and its users. Tests are compiled with -Og, because most of their code
# is templates that run once; the tested libraries keep their own flags.
function(distro_compile_as_test target)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Og>)
  target_compile_definitions(${target} PRIVATE GTEST_HAS_PTHREAD=1)  # as GoogleTest's targets
endfunction()

# Call it at the end of a folder's CMakeLists.txt, when the libraries of `target` are known.
function(distro_share_usual_headers target)
  foreach(property PRECOMPILE_HEADERS PRECOMPILE_HEADERS_REUSE_FROM DISABLE_PRECOMPILE_HEADERS)
    get_target_property(value ${target} ${property})
    if(value)
      return()
    endif()
  endforeach()
  if(DISTRO_IN_TESTS)
    distro_compile_as_test(${target})
    distro_share_headers(${target} distro_test_headers)
  else()
    distro_share_headers(${target} distro_proto)
  endif()
endfunction()

function(distro_share_usual_headers_later target)
  cmake_language(EVAL CODE "cmake_language(DEFER CALL distro_share_usual_headers ${target})")
endfunction()
