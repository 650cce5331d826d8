# teller_embed(TARGET MODULE FILE...) turns text files into MODULE/assets.hpp: for page.css of report the constants
# teller::report::assets::kPageCss (its bytes) and kPageCssSha256 (base64, for a content security policy).
# Run as a script (cmake -P) it writes that header.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  function(teller_embed target module)
    set(header ${CMAKE_BINARY_DIR}/generated/${module}/assets.hpp)
    list(JOIN ARGN "|" files)
    add_custom_command(OUTPUT ${header}
      COMMAND ${CMAKE_COMMAND} "-DFILES=${files}" -DMODULE=${module} -DHEADER=${header} -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
      DEPENDS ${ARGN} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
    target_sources(${target} PRIVATE ${header})
    target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR}/generated)
  endfunction()

  # teller_embed_bytes(TARGET FILE HEADER SYMBOL) turns any file into generated/HEADER with the array
  # teller::engine::SYMBOL of its bytes.
  function(teller_embed_bytes target file header symbol)
    set(path ${CMAKE_BINARY_DIR}/generated/${header})
    add_custom_command(OUTPUT ${path}
      COMMAND ${CMAKE_COMMAND} -DBYTES=${file} -DHEADER=${path} -DSYMBOL=${symbol} -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
      DEPENDS ${file} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
    target_sources(${target} PRIVATE ${path})
    target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR}/generated)
  endfunction()
  return()
endif()

if(DEFINED BYTES)
  file(READ "${BYTES}" hex HEX)
  # Compilers and editors like short lines.
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  file(WRITE "${HEADER}" "#pragma once\n\nnamespace teller::engine {\n\ninline constexpr unsigned char ${SYMBOL}[] = {\n${bytes}\n};\n\n}  // namespace teller::engine\n")
  return()
endif()

# SHA-256 of a string, base64.
function(sha256_base64 text result)
  string(SHA256 hex "${text}")
  set(alphabet "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  string(APPEND hex "00")  # 33 bytes; the last two digits of the text are padding
  set(out "")
  foreach(group RANGE 0 10)
    math(EXPR at "${group} * 6")
    string(SUBSTRING "${hex}" ${at} 6 digits)
    foreach(shift 18 12 6 0)
      math(EXPR value "(0x${digits} >> ${shift}) & 63")
      string(SUBSTRING "${alphabet}" ${value} 1 letter)
      string(APPEND out "${letter}")
    endforeach()
  endforeach()
  string(SUBSTRING "${out}" 0 43 out)
  set(${result} "${out}=" PARENT_SCOPE)
endfunction()

set(body "#pragma once\n\n#include <string_view>\n\nnamespace teller::${MODULE}::assets {\n\n")
string(REPLACE "|" ";" FILES "${FILES}")
foreach(file ${FILES})
  file(READ "${file}" text)
  get_filename_component(stem "${file}" NAME)
  string(REGEX MATCHALL "[a-z0-9]+" words "${stem}")
  set(name "k")
  foreach(word ${words})
    string(SUBSTRING ${word} 0 1 first)
    string(SUBSTRING ${word} 1 -1 rest)
    string(TOUPPER ${first} first)
    string(APPEND name "${first}${rest}")
  endforeach()
  sha256_base64("${text}" hash)
  # Compilers bound the length of one literal; neighbours are joined.
  set(literals "")
  string(LENGTH "${text}" length)
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${text}" ${at} 8000 piece)
    string(APPEND literals "R\"teller(${piece})teller\"\n")
    math(EXPR at "${at} + 8000")
  endwhile()
  string(APPEND body "inline constexpr std::string_view ${name} =\n${literals};\n")
  string(APPEND body "inline constexpr std::string_view ${name}Sha256 = \"${hash}\";\n\n")
endforeach()
string(APPEND body "}  // namespace teller::${MODULE}::assets\n")
file(WRITE "${HEADER}" "${body}")
