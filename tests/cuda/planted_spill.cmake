# Makes a table from ptxas's messages about two kernels. One kernel calls a function that spills registers, so
# no_spills.cmake must refuse the table and name that kernel.
# usage: cmake -DCHECK=... -DTABLER=... -DSCRATCH=... -P planted_spill.cmake
cmake_minimum_required(VERSION 3.25)
file(MAKE_DIRECTORY ${SCRATCH})
file(WRITE ${SCRATCH}/planted.o.ptxas "ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_ZN6lamina4cuda4goodEi' for 'sm_90'
ptxas info    : Function properties for _ZN6lamina4cuda4goodEi
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 4096 bytes smem, 400 bytes cmem[0]
ptxas info    : Compiling entry function '_ZN6lamina4cuda3badEi' for 'sm_80'
ptxas info    : Function properties for _ZN6lamina4cuda3badEi
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Function properties for helper
    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 255 registers, used 0 barriers, 400 bytes cmem[0]
")
execute_process(COMMAND ${TABLER} ${SCRATCH}/planted.txt ${SCRATCH}/planted.o COMMAND_ERROR_IS_FATAL ANY)
file(STRINGS ${SCRATCH}/planted.txt lines)
set(expected "arch registers shared stack spill_stores spill_loads kernel" "sm_80 255 0 16 12 8 bad"
             "sm_90 32 4096 0 0 0 good")
if(NOT lines STREQUAL expected)
  message(FATAL_ERROR "the table is\n${lines}\nand not\n${expected}")
endif()
execute_process(COMMAND ${CMAKE_COMMAND} -DTABLE=${SCRATCH}/planted.txt -P ${CHECK}
                RESULT_VARIABLE status ERROR_VARIABLE text OUTPUT_VARIABLE text)
if(status EQUAL 0 OR NOT text MATCHES "bad for sm_80 spills: 12 bytes stored, 8 loaded" OR text MATCHES "good for")
  message(FATAL_ERROR "not exactly the planted spill was found:\n${text}")
endif()
