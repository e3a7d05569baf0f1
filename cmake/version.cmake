# Writes generated/version.hpp, at each build: only a commit, or the first change after one, changes it.
#
#   cmake -DSOURCE=… -DVERSION=… -DOUTPUT=… -P version.cmake

set(commit "")
find_program(git git)
if(git AND EXISTS ${SOURCE}/.git)
  execute_process(
    COMMAND ${git} -c safe.directory=* -C ${SOURCE} describe --always --exclude=* --abbrev=7 --dirty=+
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
set(text "#define TROUPE_VERSION \"${VERSION}\"\n#define TROUPE_COMMIT \"${commit}\"\n")
set(before "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT before STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
