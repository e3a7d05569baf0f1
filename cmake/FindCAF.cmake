# Finds the C++ Actor Framework as Debian packages it: headers and shared libraries, no CMake config of its own.
# Only the core is looked for: Troupe does not link CAF's networking (docs/adr/0003-no-caf-networking.md).
#
#   CAF::core     imported target
#   CAF_VERSION   e.g. 0.17.6
#
# Set CAF_ROOT to prefer another build, e.g. one instrumented for a sanitizer (static: libcaf_core_static.a).

find_path(CAF_INCLUDE_DIR caf/config.hpp HINTS ${CAF_ROOT}/include)
find_library(CAF_LIBRARY_core NAMES caf_core_static caf_core HINTS ${CAF_ROOT}/lib)

if(CAF_INCLUDE_DIR)
  file(STRINGS "${CAF_INCLUDE_DIR}/caf/config.hpp" _caf_line REGEX "#define CAF_VERSION [0-9]+")
  string(REGEX REPLACE ".*CAF_VERSION ([0-9]+).*" "\\1" _caf_number "${_caf_line}")
  math(EXPR _caf_major "${_caf_number} / 10000")
  math(EXPR _caf_minor "(${_caf_number} / 100) % 100")
  math(EXPR _caf_patch "${_caf_number} % 100")
  set(CAF_VERSION "${_caf_major}.${_caf_minor}.${_caf_patch}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CAF REQUIRED_VARS CAF_LIBRARY_core CAF_INCLUDE_DIR VERSION_VAR CAF_VERSION)

if(CAF_FOUND AND NOT TARGET CAF::core)
  find_package(Threads REQUIRED)
  add_library(CAF::core UNKNOWN IMPORTED)
  set_target_properties(CAF::core PROPERTIES
    IMPORTED_LOCATION "${CAF_LIBRARY_core}"
    INTERFACE_INCLUDE_DIRECTORIES "${CAF_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS}")
endif()
mark_as_advanced(CAF_INCLUDE_DIR CAF_LIBRARY_core)
