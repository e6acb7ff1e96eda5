# DISTRO_PORTABLE: programs that run with only libc, libstdc++ and a LibTorch folder, for scripts/package_programs and the
# Debian packages.
# Debian's packages are linked from their static archives if they have one. Shared libraries are loaded from beside the
# program: those without an archive (prometheus-cpp), OpenSSL and zlib from lib/, LibTorch from torch, a link.
option(DISTRO_PORTABLE "Link Debian's packages statically, find LibTorch beside the program" OFF)
if(NOT DISTRO_PORTABLE)
  return()
endif()

# FILE.so -> FILE.a, if that exists.
function(distro_archive_of library out)
  string(REGEX REPLACE "\\.so[.0-9]*$" ".a" archive "${library}")
  if(library MATCHES "\\.so[.0-9]*$" AND EXISTS "${archive}")
    set(${out} "${archive}" PARENT_SCOPE)
  else()
    set(${out} "${library}" PARENT_SCOPE)
  endif()
endfunction()

get_property(imported DIRECTORY PROPERTY IMPORTED_TARGETS)
foreach(target ${imported})
  get_target_property(type ${target} TYPE)
  if(NOT type STREQUAL "EXECUTABLE" AND NOT target MATCHES "^(OpenSSL|ZLIB)::")
    foreach(property IMPORTED_LOCATION IMPORTED_LOCATION_NONE IMPORTED_LOCATION_RELEASE INTERFACE_LINK_LIBRARIES)
      get_target_property(value ${target} ${property})
      if(value)
        set(archives "")
        foreach(library ${value})
          distro_archive_of("${library}" archive)
          list(APPEND archives "${archive}")
        endforeach()
        set_target_properties(${target} PROPERTIES ${property} "${archives}")
      endif()
    endforeach()
  endif()
endforeach()

find_library(DISTRO_RE2_ARCHIVE libre2.a REQUIRED)  # its target names no path
set_target_properties(re2::re2 PROPERTIES INTERFACE_LINK_LIBRARIES "${DISTRO_RE2_ARCHIVE}")

# The archives have circular references.
set(CMAKE_CXX_LINK_EXECUTABLE
  "<CMAKE_CXX_COMPILER> <FLAGS> <CMAKE_CXX_LINK_FLAGS> <LINK_FLAGS> <OBJECTS> -o <TARGET> -Wl,--start-group <LINK_LIBRARIES> -Wl,--end-group")
# Torch must not find another protobuf or OpenSSL in the program; RPATH, unlike RUNPATH, also applies to the libraries that libraries need.
# The names of functions stay for what shows stacks; what is packed for users is stripped by the packing.
add_link_options("LINKER:--exclude-libs,ALL" "LINKER:--gc-sections" "LINKER:--disable-new-dtags" "LINKER:--strip-debug")
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib" "$ORIGIN/../torch/lib" "$ORIGIN/../torch/../nvidia/cu13/lib" "$ORIGIN/../torch/../nvidia/nccl/lib")
