# What `cmake --install` puts where. Under any prefix the program finds its library, and both find what they load, by
# the way from one to the other. Not below `lib`: `pip install --target` leaves out what of a wheel's data is there.
#
#   bin/troupe, and links to it of its other names
#   libexec/troupe/libtroupe_worker.so, libtroupe_python.so, and libexec/troupe/hooks, which the launcher puts on a worker's PYTHONPATH
#   share/bash-completion/completions, share/zsh/site-functions, share/fish/vendor_completions.d, share/man/man1
#   lib/systemd/system/actor-master@.service
#   lib/python3/dist-packages/troupe (component `python`, only by name)   where Debian's python3 looks
#   libexec/troupe (component `bundle`, only by name)   what program and library load and every system does not have: a
#                                                   tree with it runs where the packages of this one are not installed

# An old kind of tag, which also counts for what the libraries load in turn, and before LD_LIBRARY_PATH.
target_link_options(troupe PRIVATE -Wl,--disable-new-dtags)
target_link_options(troupe_worker_library PRIVATE -Wl,--disable-new-dtags)
# From the build on: else CMake keeps room for it with empty entries, and each of them means the current directory. What a program looks
# for by its name alone, such as a driver's library, would be loaded from wherever it is started.
set_target_properties(troupe PROPERTIES INSTALL_RPATH "$ORIGIN/../libexec/troupe" BUILD_WITH_INSTALL_RPATH ON)
set_target_properties(troupe_worker_library PROPERTIES INSTALL_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH ON)

install(TARGETS troupe troupe_worker_library troupe_python_library
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
  LIBRARY DESTINATION libexec/troupe)
# The build has put them beside the program already (own_libraries.cmake); the training processes' libraries load no others.
install(DIRECTORY ${PROJECT_BINARY_DIR}/libexec/troupe/ DESTINATION libexec/troupe COMPONENT bundle EXCLUDE_FROM_ALL
  FILES_MATCHING REGEX "/lib[^/]*[.]so[^/]*$" PATTERN "libtroupe_*" EXCLUDE PATTERN "hooks" EXCLUDE)

# The program knows its options: completion and manual pages are what it prints of them.
set(troupe_printed)
function(troupe_print file verb)
  set(path ${PROJECT_BINARY_DIR}/${file})
  get_filename_component(folder ${file} DIRECTORY)
  add_custom_command(OUTPUT ${path}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/${folder}
    COMMAND troupe ${verb} ${ARGN} > ${path}
    DEPENDS troupe VERBATIM)
  install(FILES ${path} DESTINATION ${folder})
  set(troupe_printed ${troupe_printed} ${path} PARENT_SCOPE)
endfunction()
foreach(verb run master shell stacks dump probe)
  set(name actor-${verb})
  if(verb STREQUAL "run")
    set(name actor-launcher)
  elseif(verb MATCHES "^(dump|probe)$")
    set(name troupe-${verb})
  endif()
  troupe_print(share/bash-completion/completions/${name} ${verb} --print-completion bash)
  troupe_print(share/zsh/site-functions/_${name} ${verb} --print-completion zsh)
  troupe_print(share/fish/vendor_completions.d/${name}.fish ${verb} --print-completion fish)
  troupe_print(share/man/man1/${name}.1 ${verb} --print-manual man)
endforeach()
add_custom_target(troupe_documents ALL DEPENDS ${troupe_printed})
add_dependencies(programs troupe_documents)
install(FILES ${PROJECT_SOURCE_DIR}/deploy/systemd/actor-master@.service DESTINATION lib/systemd/system)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION share/doc/troupe)

# ---- a package for Debian: `cpack -G DEB` in the build folder ----

file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/dist-info/METADATA
  CONTENT "Metadata-Version: 2.1\nName: actor-launcher\nVersion: ${PROJECT_VERSION}\n")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/troupe DESTINATION lib/python3/dist-packages
  COMPONENT python EXCLUDE_FROM_ALL PATTERN __pycache__ EXCLUDE)
install(FILES ${PROJECT_BINARY_DIR}/dist-info/METADATA
  DESTINATION lib/python3/dist-packages/actor_launcher-${PROJECT_VERSION}.dist-info COMPONENT python EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VENDOR "The Troupe authors")
set(CPACK_PACKAGE_CONTACT "The Troupe authors <troupe@invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "keeps distributed PyTorch training alive")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_CMAKE_PROJECTS
  "${PROJECT_BINARY_DIR};troupe;Unspecified;/;${PROJECT_BINARY_DIR};troupe;python;/")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "python3 (>= 3.10)")
include(CPack)
