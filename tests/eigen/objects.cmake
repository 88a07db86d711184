# Checks the exported symbols of each instruction set's object, and the instructions in all other objects.
# usage: cmake -DNM=... -DREADELF=... -DOBJDUMP=... -DJOINED=<objects> -P objects.cmake
#        cmake -DOBJDUMP=... -DPLAIN=<objects> -P objects.cmake
cmake_minimum_required(VERSION 3.25)

# Each object exports one symbol. It may use only three parts of this backend outside the object: the thread pool,
# bf16_gemm and as_1x1. Any other symbol may be code of another instruction set.
foreach(object IN LISTS JOINED)
  execute_process(COMMAND ${NM} --defined-only --extern-only ${object} OUTPUT_VARIABLE shown COMMAND_ERROR_IS_FATAL ANY)
  if(NOT shown MATCHES "^[0-9a-f]+ [DR] _ZN6lamina5eigen[0-9]+(instruction_set|pair_kernels)_[a-z0-9_]+E\n$")
    message(SEND_ERROR "${object} does not export exactly its set's symbol:\n${shown}")
  endif()
  # AVX-512 BF16 instructions are in one separate object, and AMX instructions in another.
  set(avx512_bf16 "vdpbf16ps|vcvtne2?ps2bf16")
  set(amx "tdpbf16ps|tile(load|store|zero|release)|ldtilecfg")
  foreach(set IN ITEMS avx512_bf16 amx)
    execute_process(COMMAND ${OBJDUMP} --disassemble --no-show-raw-insn ${object} COMMAND grep -cE "${${set}}"
                    OUTPUT_VARIABLE count OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(object MATCHES "${set}\\.o$" AND count EQUAL 0)
      message(SEND_ERROR "${object} lacks the instructions of ${set}")
    elseif(NOT object MATCHES "${set}\\.o$" AND NOT count EQUAL 0)
      message(SEND_ERROR "${object} has instructions of ${set}")
    endif()
  endforeach()
  execute_process(COMMAND ${NM} --undefined-only ${object} OUTPUT_VARIABLE wanted COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "_ZNK?6lamina5eigen[^\n]*" wanted "${wanted}")
  list(FILTER wanted EXCLUDE REGEX "^_ZNK?6lamina5eigen(10ThreadPool|[0-9]+bf16_gemm_|6as_1x1ENS_8ConvUnitE)")
  if(wanted)
    message(SEND_ERROR "${object} uses symbols that may be another set's: ${wanted}")
  endif()
  execute_process(COMMAND ${READELF} --section-headers --section-groups --wide ${object} OUTPUT_VARIABLE sections
                  COMMAND_ERROR_IS_FATAL ANY)
  if(sections MATCHES "\\.(init_array|ctors)" OR NOT sections MATCHES "There are no section groups in this file")
    message(SEND_ERROR "${object} has code that runs at every start, or sections of two objects:\n${sections}")
  endif()
endforeach()

# Instructions that a processor may lack: AVX (v...), masks (k...), FMA, BMI, and SSE beyond SSE2.
set(beyond_sse2 v[a-z0-9]+ k[a-z]+[bwdq] andn bextr bls[ir] blsmsk bzhi mulx pdep pext rorx sarx sh[lr]x lzcnt popcnt
                movbe crc32[bwlq]? palignr pshufb pabs[bwd] "ph(add|sub)[wd]" "h(add|sub)p[sd]" addsubp[sd] movddup
                movs[hl]dup lddqu "pmul(ld|dq)" "p(min|max)(sb|sd|ud|uw)" p?blendv?[bwp][sd]? round[sp][sd]
                "p(extr|insr)[bdq]" insertps extractps dpp[sd] ptest "pcmp(eq|gt)q" pmov[sz]x[bwd][wdq] packusdw)
list(JOIN beyond_sse2 "|" beyond_sse2)
foreach(object IN LISTS PLAIN)
  execute_process(COMMAND ${OBJDUMP} --disassemble --no-show-raw-insn ${object}
                  COMMAND grep -E -m 5 "^ *[0-9a-f]+:[[:space:]]+(${beyond_sse2})([[:space:]]|$)"
                  OUTPUT_VARIABLE found RESULTS_VARIABLE status)
  list(GET status 1 status)
  if(NOT status EQUAL 1)
    message(SEND_ERROR "${object} has instructions that not every processor has:\n${found}")
  endif()
endforeach()

if("${JOINED}${PLAIN}" STREQUAL "")
  message(FATAL_ERROR "no objects")
endif()
