# Writes LISTING: one add_test line for every case of PROGRAM, with any characters in its name.
# A case whose filter matches no test fails (-w NoTests).
set(ENV{ASAN_OPTIONS} "detect_leaks=0")
execute_process(COMMAND "${PROGRAM}" --list-test-names-only OUTPUT_VARIABLE names
                RESULT_VARIABLE count ERROR_VARIABLE errors)
if(count LESS 1)
  message(FATAL_ERROR "${PROGRAM} lists no test: ${errors}")
endif()
string(REPLACE ";" "@SEMICOLON@" names "${names}")
string(REPLACE "[" "@BRACKET@" names "${names}")
string(REPLACE "]" "@TEKCARB@" names "${names}")
string(REGEX REPLACE "\n$" "" names "${names}")
string(REPLACE "\n" ";" names "${names}")

set(lines "")
set(more "")
if(ENVIRONMENT)
  set(more " ENVIRONMENT [==[${ENVIRONMENT}]==]")
endif()
foreach(name IN LISTS names)
  set(filter "${name}")
  foreach(special "\\" "," "@BRACKET@")
    string(REPLACE "${special}" "\\${special}" filter "${filter}")
  endforeach()
  foreach(text IN ITEMS name filter)
    string(REPLACE "@SEMICOLON@" ";" ${text} "${${text}}")
    string(REPLACE "@BRACKET@" "[" ${text} "${${text}}")
    string(REPLACE "@TEKCARB@" "]" ${text} "${${text}}")
  endforeach()
  string(APPEND lines
    "add_test([==[${PREFIX}${name}]==] [==[${PROGRAM}]==] [==[${filter}]==] -w NoTests)\n"
    "set_tests_properties([==[${PREFIX}${name}]==] PROPERTIES LABELS ${LABEL} TIMEOUT ${TIMEOUT}${more})\n")
endforeach()
file(WRITE "${LISTING}" "${lines}")
