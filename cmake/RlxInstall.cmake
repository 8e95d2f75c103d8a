# cmake --install gives a tree that find_package(rlx) finds: the library, the public headers, the package files.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(RLX_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/rlx)
install(TARGETS rlx EXPORT rlxTargets)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/rlx DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(EXPORT rlxTargets NAMESPACE rlx:: DESTINATION ${RLX_PACKAGE_DIR})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/rlxConfig.cmake.in ${PROJECT_BINARY_DIR}/rlxConfig.cmake
  INSTALL_DESTINATION ${RLX_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/rlxConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/rlxConfig.cmake ${PROJECT_BINARY_DIR}/rlxConfigVersion.cmake
  DESTINATION ${RLX_PACKAGE_DIR})
