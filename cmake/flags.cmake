# Compiler flags that every target of ours carries.
add_library(kopt_flags INTERFACE)
target_compile_definitions(kopt_flags INTERFACE _GNU_SOURCE KOPT_VERSION="${PROJECT_VERSION}")
target_compile_options(kopt_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes
  -Wmissing-prototypes -Wold-style-definition -Wvla -Wpointer-arith -Wcast-qual -Wwrite-strings
  -Wundef -Wformat=2 -Wconversion -Wsign-conversion -Wswitch-enum -Wimplicit-fallthrough
  -Wdouble-promotion -fno-common -ffp-contract=off)
if(KOPT_WERROR)
  target_compile_options(kopt_flags INTERFACE -Werror)
endif()
if(KOPT_SANITIZE)
  target_compile_definitions(kopt_flags INTERFACE KP_ARENA_DEBUG)
  target_compile_options(kopt_flags INTERFACE -fsanitize=${KOPT_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  if(CMAKE_C_COMPILER_ID STREQUAL GNU)
    # These look at what the optimiser left, which instrumentation changes: they misfire here.
    target_compile_options(kopt_flags INTERFACE -Wno-format-truncation -Wno-maybe-uninitialized)
  endif()
  target_link_options(kopt_flags INTERFACE -fsanitize=${KOPT_SANITIZE})
endif()
