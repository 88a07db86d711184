# Checks which symbols the objects of each instruction set show a linker, and which instructions all other objects hold.
# usage: cmake -DNM=... -DREADELF=... -DOBJDUMP=... -DJOINED=<objects> -P objects.cmake
#        cmake -DOBJDUMP=... -DPLAIN=<objects> -P objects.cmake
cmake_minimum_required(VERSION 3.25)

# Each object shows one symbol. Of this backend it uses only three things that are compiled once: the thread pool,
# bf16_gemm and as_1x1. Any other symbol could be that of another set.
foreach(object IN LISTS JOINED)
  execute_process(COMMAND ${NM} --defined-only --extern-only ${object} OUTPUT_VARIABLE shown COMMAND_ERROR_IS_FATAL ANY)
  if(NOT shown MATCHES "^[0-9a-f]+ [DR] _ZN6lamina5eigen[0-9]+(instruction_set|pair_kernels)_[a-z0-9_]+E\n$")
    message(SEND_ERROR "${object} shows more, or less, than its set:\n${shown}")
  endif()
  # The instructions of AVX-512 BF16 are in an object of their own, and so are those of AMX.
  set(avx512_bf16 "vdpbf16ps|vcvtne2?ps2bf16")
  set(amx "tdpbf16ps|tile(load|store|zero|release)|ldtilecfg")
  foreach(set IN ITEMS avx512_bf16 amx)
    execute_process(COMMAND ${OBJDUMP} --disassemble --no-show-raw-insn ${object} COMMAND grep -cE "${${set}}"
                    OUTPUT_VARIABLE count OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(object MATCHES "${set}\\.o$" AND count EQUAL 0)
      message(SEND_ERROR "${object} lacks the instructions that it is for")
    elseif(NOT object MATCHES "${set}\\.o$" AND NOT count EQUAL 0)
      message(SEND_ERROR "${object} has instructions of ${set}")
    endif()
  endforeach()
  execute_process(COMMAND ${NM} --undefined-only ${object} OUTPUT_VARIABLE wanted COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "_ZNK?6lamina5eigen[^\n]*" wanted "${wanted}")
  list(FILTER wanted EXCLUDE REGEX "^_ZNK?6lamina5eigen(10ThreadPool|[0-9]+bf16_gemm_|6as_1x1ENS_8ConvUnitE)")
  if(wanted)
    message(SEND_ERROR "${object} takes from other sets: ${wanted}")
  endif()
  execute_process(COMMAND ${READELF} --section-groups --wide ${object} OUTPUT_VARIABLE groups
                  COMMAND_ERROR_IS_FATAL ANY)
  if(NOT groups MATCHES "There are no section groups in this file")
    message(SEND_ERROR "${object} has sections that a linker may take for another's:\n${groups}")
  endif()
endforeach()

# Nothing that a processor may lack: no AVX (v...), masks (k...), FMA, BMI, or SSE beyond 2.
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

list(LENGTH JOINED joined)
list(LENGTH PLAIN plain)
math(EXPR count "${joined} + ${plain}")
if(count EQUAL 0)
  message(FATAL_ERROR "no objects")
endif()
message(STATUS "${count} objects read")
