# DISTRO_DEPLOY_PYTHON: the Python of tests/deploy and tests/browser, with the packages of tests/deploy/requirements.txt.
# Default: .deps/deploy, made by scripts/install_dependencies --with_tests. Without it those tests are not defined.
set(DISTRO_DEPLOY_PYTHON "${CMAKE_SOURCE_DIR}/.deps/deploy/bin/python3" CACHE FILEPATH
  "Python with the packages of tests/deploy/requirements.txt")
if(NOT EXISTS "${DISTRO_DEPLOY_PYTHON}")
  message(STATUS "Without the tests of chart, rules and pages: '${DISTRO_DEPLOY_PYTHON}' was not found; "
    "run scripts/install_dependencies --with_tests, or set DISTRO_DEPLOY_PYTHON")
endif()

# distro_pytest(NAME chart_test [SERIAL] [TIMEOUT 300] [COST 70] [LABELS slow])   one ctest entry that runs NAME.py of this folder
#
# Runs it with pytest. SERIAL: no other test runs at the same time. COST: seconds of a long test, so that ctest starts it early.
# DISTRO_BIN is the folder of the build's programs, DISTRO_SOURCE the checkout. Each entry has its own folder of temporary files in the
# build tree, because pytest's default is shared and concurrent sessions delete each other's files. If every test of a file is skipped,
# the entry is shown as skipped.
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

# DISTRO_TRANSFORMERS_PYTHON: a Python with PyTorch and the packages of tests/python/trainers/requirements.txt. Default:
# .deps/transformers, made by scripts/install_dependencies --with_transformers.
set(DISTRO_TRANSFORMERS_PYTHON "${CMAKE_SOURCE_DIR}/.deps/transformers/bin/python3" CACHE FILEPATH
  "Python with PyTorch and the packages of tests/python/trainers/requirements.txt")

# distro_transformers_test(NAME evaluate_test SCRIPT evaluate_test.py ARGS ...)   one ctest entry with the label `transformers`
#
# Runs SCRIPT of this folder in that Python, with the built package distro_train and without Hugging Face's servers. The
# presets exclude the label; scripts/test --transformers runs it. Not defined without that Python, nor with sanitizers, because
# Python would have to load their runtime first.
function(distro_transformers_test)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME;SCRIPT" "ARGS")
  if(DISTRO_SANITIZERS OR NOT EXISTS "${DISTRO_TRANSFORMERS_PYTHON}")
    return()
  endif()
  distro_command_test(NAME ${ARG_NAME} COMMAND "${DISTRO_TRANSFORMERS_PYTHON}" -B ${ARG_SCRIPT} ${ARG_ARGS}
    WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  set_tests_properties(${ARG_NAME} PROPERTIES TIMEOUT 900 LABELS transformers ENVIRONMENT
    "HF_HUB_OFFLINE=1;DISTRO_TEST_METHOD=deltas;DISTRO_TORCH_PYTHON=${DISTRO_TRANSFORMERS_PYTHON};DISTRO_PYTHON_PACKAGE=${CMAKE_BINARY_DIR}/python;PYTHONPATH=${CMAKE_BINARY_DIR}/python")
endfunction()
