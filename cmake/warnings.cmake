# lamina_flags: the flags of all our targets. They are never exported.
add_library(lamina_flags INTERFACE)
target_compile_features(lamina_flags INTERFACE cxx_std_20)
target_compile_options(lamina_flags INTERFACE -Wall -Wextra -Wconversion -Wshadow)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(lamina_flags INTERFACE -Wno-restrict)  # false on "a" + std::string: GCC bug 105329
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 16)
    message(FATAL_ERROR "clang ${CMAKE_CXX_COMPILER_VERSION} does not compile the ranges of the standard library; clang 16 "
                        "or later does, and so does g++ 12 or later")
  endif()
  target_compile_options(lamina_flags INTERFACE -Wno-deprecated-declarations)  # std::stable_sort of g++ 12 in clang 17
endif()
if(LAMINA_GROUPS AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(lamina_flags INTERFACE -Wno-subobject-linkage)  # a group includes several files
endif()
if(LAMINA_WERROR)
  target_compile_options(lamina_flags INTERFACE -Werror)
endif()
if(LAMINA_SANITIZE)
  target_compile_options(lamina_flags INTERFACE -fsanitize=${LAMINA_SANITIZE} -fno-omit-frame-pointer
                                                -fno-sanitize-recover=all)
  target_link_options(lamina_flags INTERFACE -fsanitize=${LAMINA_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # This warning is false under sanitizers, for instance in std::regex: GCC bug 105562.
    target_compile_options(lamina_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()

# Compiles and links an exported target with lamina_flags. If the target linked them, even privately, the package of a
# static library would name them.
function(lamina_use_flags target)
  target_compile_options(${target} PRIVATE $<TARGET_PROPERTY:lamina_flags,INTERFACE_COMPILE_OPTIONS>)
  target_link_options(${target} PRIVATE $<TARGET_PROPERTY:lamina_flags,INTERFACE_LINK_OPTIONS>)
endfunction()

# Lets an exported target include the headers of a header-only one, without naming it in the package.
function(lamina_use_headers target headers)
  target_include_directories(${target} SYSTEM PRIVATE $<TARGET_PROPERTY:${headers},INTERFACE_INCLUDE_DIRECTORIES>)
  target_compile_definitions(${target} PRIVATE $<TARGET_PROPERTY:${headers},INTERFACE_COMPILE_DEFINITIONS>)
endfunction()
