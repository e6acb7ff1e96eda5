# Debian packages of the programs of DISTRO_PORTABLE, by CPack (scripts/package_deb). All libraries that they need are in the package
# or in every Debian since 12 and every Ubuntu since 22.04.
#   distro-aggregator   aggregator, archiver, distroctl, their units, a user
#   distro-worker       the worker; LibTorch is where /etc/distro/torch points
# Programs are in /usr/lib/<package>/bin, with links in /usr/bin. From there the RPATH of DistroPortable.cmake
# finds their libraries and LibTorch.
if(NOT DISTRO_PORTABLE OR NOT DISTRO_WORKER)
  return()
endif()
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # scripts build the programs and nothing else

# distro_debian_programs(COMPONENT aggregator PACKAGE distro-aggregator PROGRAMS ...)
function(distro_debian_programs)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "COMPONENT;PACKAGE" "PROGRAMS")
  set(folder "lib/${ARG_PACKAGE}")
  install(TARGETS ${ARG_PROGRAMS} RUNTIME DESTINATION "${folder}/bin" COMPONENT ${ARG_COMPONENT})
  install(FILES $<TARGET_FILE:prometheus-cpp::core> RENAME $<TARGET_SONAME_FILE_NAME:prometheus-cpp::core>
          DESTINATION "${folder}/lib" COMPONENT ${ARG_COMPONENT})
  install(FILES "${CMAKE_SOURCE_DIR}/LICENSE" DESTINATION "share/doc/${ARG_PACKAGE}" RENAME copyright COMPONENT ${ARG_COMPONENT})
  install(FILES "${CMAKE_BINARY_DIR}/THIRD_PARTY_LICENSES" "${CMAKE_SOURCE_DIR}/deb/${ARG_COMPONENT}/README.Debian"
          DESTINATION "share/doc/${ARG_PACKAGE}" COMPONENT ${ARG_COMPONENT})
endfunction()

# distro_debian_link(COMPONENT /path/in/the/package TARGET)
function(distro_debian_link component path target)
  get_filename_component(folder "${path}" DIRECTORY)
  get_filename_component(name "${path}" NAME)
  set(link "${CMAKE_BINARY_DIR}/links/${component}/${name}")
  file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/links/${component}")
  file(CREATE_LINK "${target}" "${link}" SYMBOLIC)
  install(FILES "${link}" DESTINATION "${folder}" COMPONENT ${component})
endfunction()

set(deb "${CMAKE_SOURCE_DIR}/deb")
distro_debian_programs(COMPONENT aggregator PACKAGE distro-aggregator PROGRAMS distro-aggregator distro-archiver distroctl)
foreach(program distro-aggregator distro-archiver distroctl)
  distro_debian_link(aggregator "bin/${program}" "../lib/distro-aggregator/bin/${program}")
endforeach()
foreach(service distro-aggregator distro-archiver)
  install(FILES "${deb}/aggregator/${service}.service" DESTINATION lib/systemd/system COMPONENT aggregator)
  install(FILES "${deb}/aggregator/${service}.default" DESTINATION /etc/default RENAME "${service}" COMPONENT aggregator)
endforeach()

distro_debian_programs(COMPONENT worker PACKAGE distro-worker PROGRAMS distro-worker)
install(PROGRAMS "${deb}/worker/distro-worker" DESTINATION bin COMPONENT worker)
install(FILES "${CMAKE_SOURCE_DIR}/scripts/libtorch-requirements.txt" DESTINATION share/doc/distro-worker COMPONENT worker)
distro_debian_link(worker lib/distro-worker/torch /etc/distro/torch)

set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL aggregator worker)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_VENDOR DisTrO)
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "The DisTrO developers <developers@distro.invalid>")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(needs "libc6 (>= 2.34), libgcc-s1 (>= 3.4), libssl3 (>= 3.0.0), libstdc++6 (>= 12), zlib1g (>= 1:1.2.11)")
set(CPACK_DEBIAN_AGGREGATOR_PACKAGE_NAME distro-aggregator)
set(CPACK_DEBIAN_AGGREGATOR_PACKAGE_DEPENDS "${needs}, adduser")
set(CPACK_COMPONENT_AGGREGATOR_DESCRIPTION "Training over the internet: the server of a run
The aggregator holds a DisTrO training run: it combines what workers send and
streams the result to all. With distro-archiver, which publishes models, and
distroctl, the operator's tool.")
set(CPACK_DEBIAN_AGGREGATOR_PACKAGE_CONTROL_EXTRA
  "${deb}/aggregator/postinst" "${deb}/aggregator/prerm" "${deb}/aggregator/postrm" "${deb}/aggregator/conffiles")
set(CPACK_DEBIAN_WORKER_PACKAGE_NAME distro-worker)
set(CPACK_DEBIAN_WORKER_PACKAGE_DEPENDS "${needs}, libgomp1")
set(CPACK_COMPONENT_WORKER_DESCRIPTION "Training over the internet: a worker
Trains in a DisTrO run, on CPUs. Needs LibTorch 2.11.0, which is not packaged:
README.Debian says how to get it.")
include(CPack)
