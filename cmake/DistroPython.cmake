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

# DISTRO_TRANSFORMERS_PYTHON: a Python with PyTorch and the packages of tests/python/trainers/requirements.txt. Default: what
# scripts/install_dependencies --with_transformers puts into .deps/transformers.
set(DISTRO_TRANSFORMERS_PYTHON "${CMAKE_SOURCE_DIR}/.deps/transformers/bin/python3" CACHE FILEPATH
  "Python with PyTorch and the packages of tests/python/trainers/requirements.txt")

# distro_transformers_test(NAME evaluate_test SCRIPT evaluate_test.py ARGS ...)   one ctest entry with the label `transformers`
#
# Runs SCRIPT of this folder in that Python, with the built package distro_train and without Hugging Face's servers. The
# presets leave the label out; scripts/test --transformers runs it. Absent where that Python is, and with sanitizers, whose
# runtime Python would have to load first.
function(distro_transformers_test)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME;SCRIPT" "ARGS")
  if(DISTRO_SANITIZERS OR NOT EXISTS "${DISTRO_TRANSFORMERS_PYTHON}")
    return()
  endif()
  distro_command_test(NAME ${ARG_NAME} COMMAND "${DISTRO_TRANSFORMERS_PYTHON}" -B ${ARG_SCRIPT} ${ARG_ARGS}
    WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  set_tests_properties(${ARG_NAME} PROPERTIES TIMEOUT 900 LABELS transformers ENVIRONMENT
    "HF_HUB_OFFLINE=1;DISTRO_TORCH_PYTHON=${DISTRO_TRANSFORMERS_PYTHON};DISTRO_PYTHON_PACKAGE=${CMAKE_BINARY_DIR}/python;PYTHONPATH=${CMAKE_BINARY_DIR}/python")
endfunction()
