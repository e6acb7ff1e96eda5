# DISTRO_DEPLOY_PYTHON: the Python of tests/deploy and tests/browser, with the packages of tests/deploy/requirements.txt.
# Default: what scripts/install_dependencies --with_tests puts into .deps/deploy. Where there is none, those tests are
# absent.
set(DISTRO_DEPLOY_PYTHON "${CMAKE_SOURCE_DIR}/.deps/deploy/bin/python3" CACHE FILEPATH
  "Python with the packages of tests/deploy/requirements.txt")
if(NOT EXISTS "${DISTRO_DEPLOY_PYTHON}")
  message(STATUS "Without the tests of chart, rules and pages: '${DISTRO_DEPLOY_PYTHON}' was not found; "
    "run scripts/install_dependencies --with_tests, or set DISTRO_DEPLOY_PYTHON")
endif()

# distro_pytest(NAME chart_test [SERIAL] [TIMEOUT 300] [COST 70] [LABELS slow])   one ctest entry that runs NAME.py of this folder
#
# In pytest. SERIAL: with no other test beside it. COST: seconds, of a test so long that it is to begin early. The programs
# of the build are in the folder that DISTRO_BIN names; DISTRO_SOURCE is the checkout. Folders of tests are in the build tree, one for each entry: what pytest takes by itself is
# shared, and sessions that run at the same time clean it up under each other's feet. A file of which every test is skipped shows as skipped.
function(distro_pytest)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "SERIAL" "NAME;TIMEOUT;COST" "LABELS")
  if(NOT EXISTS "${DISTRO_DEPLOY_PYTHON}")
    return()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  if(NOT ARG_COST)
    set(ARG_COST 0)
  endif()
  distro_command_test(NAME ${ARG_NAME} COMMAND "${DISTRO_DEPLOY_PYTHON}" -B -m pytest -q -rs --durations=5
    "--basetemp=${CMAKE_CURRENT_BINARY_DIR}/${ARG_NAME}.tmp" ${ARG_NAME}.py
    WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  set_tests_properties(${ARG_NAME} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}" RUN_SERIAL ${ARG_SERIAL} COST ${ARG_COST}
    ENVIRONMENT "DISTRO_BIN=${CMAKE_BINARY_DIR}/bin;DISTRO_SOURCE=${CMAKE_SOURCE_DIR}"
    SKIP_REGULAR_EXPRESSION "(^|\n)[0-9]+ skipped in ")
endfunction()
