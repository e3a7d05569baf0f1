# Puts what a program of the build folder loads beside it, where its run path leads: cmake -DPROGRAM=… -DINTO=… -P this.
# A run path goes before LD_LIBRARY_PATH, and the directories of the system behind it; so a Conda environment, or a tree of modules, would
# else replace libraries by others of the same names. An installed bundle and a wheel carry them in the same folder.

# Those of the last link: the program would be found to load them, and they would never be those of the system again.
set(list "${INTO}/libraries.txt")
if(EXISTS "${list}")
  file(STRINGS "${list}" names)
  foreach(name IN LISTS names)
    file(REMOVE "${INTO}/${name}")
  endforeach()
endif()
file(GET_RUNTIME_DEPENDENCIES
  EXECUTABLES "${PROGRAM}"
  RESOLVED_DEPENDENCIES_VAR found
  UNRESOLVED_DEPENDENCIES_VAR missing
  # A process has one C and one C++ library, and that is not ours: tags of wheels (manylinux) take them for granted.
  PRE_EXCLUDE_REGEXES "^lib(c|m|dl|rt|pthread|resolv|gcc_s|stdc\\+\\+|asan|tsan|ubsan)\\.so" "^ld-linux")
file(MAKE_DIRECTORY "${INTO}")
set(names)
foreach(library IN LISTS found)
  get_filename_component(name "${library}" NAME)
  file(REAL_PATH "${library}" real)
  file(COPY_FILE "${real}" "${INTO}/${name}" ONLY_IF_DIFFERENT)
  list(APPEND names "${name}")
endforeach()
list(JOIN names "\n" lines)
file(WRITE "${list}" "${lines}\n")
