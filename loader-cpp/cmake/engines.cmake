# One static library an engine, and the registry that lists those built in.
#
#   opjoule_engine(NAME libraries...)
#     builds databases/NAME.cc (and databases/NAME_*.cc) as target engine_NAME, linked with the libraries; the engine
#     is left out when it is not asked for or one of the libraries is missing. databases/NAME.cc defines
#       namespace opjoule { const Engine& NAME_engine(); }
set(OPJOULE_ENGINES "all" CACHE STRING "Engines to build in, as in 'leveldb;sqlite'; all: each whose library is here")
set(built_engines "")
set(left_out_engines "")
file(REMOVE ${CMAKE_CURRENT_BINARY_DIR}/missing-libraries.txt)  # ENGINE LIBRARY, for host/loader_build.py

function(opjoule_engine name)
  set(left_out_engines ${left_out_engines} ${name} PARENT_SCOPE)  # until a line below takes it back
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/databases/${name}.cc)
  if(NOT name STREQUAL "null" AND NOT OPJOULE_ENGINES STREQUAL "all" AND NOT name IN_LIST OPJOULE_ENGINES
     AND NOT (OPJOULE_TESTS AND NOT ARGN))  # tests of the loader's own parts need the engines without a library
    return()
  endif()
  set(found "")
  foreach(library IN LISTS ARGN)
    if(library STREQUAL "dl" OR TARGET ${library})
      list(APPEND found ${library})
      continue()
    endif()
    string(TOUPPER "OPJOULE_${library}_LIBRARY" variable)
    string(MAKE_C_IDENTIFIER ${variable} variable)
    find_library(${variable} ${library})
    if(NOT ${variable})
      message(STATUS "engine ${name}: left out, lib${library} not found")
      file(APPEND ${CMAKE_CURRENT_BINARY_DIR}/missing-libraries.txt "${name} ${library}\n")
      return()
    endif()
    list(APPEND found ${${variable}})
  endforeach()
  file(GLOB more CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/databases/${name}_*.cc)
  add_library(engine_${name} STATIC ${source} ${more})
  target_link_libraries(engine_${name} PUBLIC core ${found})
  # A newer package's header may be older than what was compiled with the header before: its version is part of the command.
  if(OPJOULE_VERSIONS_${name})
    target_compile_definitions(engine_${name} PUBLIC "OPJOULE_VERSIONS_${name}=\"${OPJOULE_VERSIONS_${name}}\"")
  endif()
  set(built_engines ${built_engines} ${name} PARENT_SCOPE)
  set(left_out_engines ${left_out_engines} PARENT_SCOPE)
  message(STATUS "engine ${name}: built in")
endfunction()

opjoule_engine(null)
opjoule_engine(flatfolder)
opjoule_engine(nestedfolder)
opjoule_engine(leveldb leveldb snappy)
opjoule_engine(sqlite sqlite3 dl)
opjoule_engine(rocksdb rocksdb snappy lz4 zstd bz2 z dl)
opjoule_engine(berkeleydb db_cxx)
opjoule_engine(lmdb lmdb)

# The MongoDB client that loader-cpp/board-builds makes: Debian's own archive does not link statically.
string(REPLACE "x86_64" "amd64" mongoc_board ${CMAKE_SYSTEM_PROCESSOR})
string(REGEX REPLACE "^arm.*" "armhf" mongoc_board ${mongoc_board})
set(OPJOULE_MONGOC ${CMAKE_SOURCE_DIR}/../build/board/${mongoc_board}/mongoc CACHE PATH "The MongoDB client's lib and include")
if(EXISTS ${OPJOULE_MONGOC}/lib/libmongoc-static-1.0.a)
  add_library(mongoc INTERFACE)
  target_include_directories(mongoc SYSTEM INTERFACE ${OPJOULE_MONGOC}/include)
  target_compile_definitions(mongoc INTERFACE MONGOC_STATIC BSON_STATIC)
  target_link_libraries(mongoc INTERFACE ${OPJOULE_MONGOC}/lib/libmongoc-static-1.0.a
                        ${OPJOULE_MONGOC}/lib/libbson-static-1.0.a resolv rt m Threads::Threads)
endif()
opjoule_engine(mongodb mongoc)

# The registry is generated, so that adding an engine is one file and one line above.
set(declarations "")
set(entries "")
list(SORT built_engines)
foreach(name IN LISTS built_engines)
  string(APPEND declarations "const Engine& ${name}_engine();\n")
  string(APPEND entries "    all.push_back(${name}_engine());\n")
endforeach()
configure_file(cmake/engines.cc.in ${CMAKE_CURRENT_BINARY_DIR}/engines.cc @ONLY)
file(GLOB shared_engine_sources CONFIGURE_DEPENDS databases/shared/*.cc)
add_library(engines STATIC ${CMAKE_CURRENT_BINARY_DIR}/engines.cc)
if(shared_engine_sources)
  target_sources(core PRIVATE ${shared_engine_sources})  # what several engines use (folder sizes, timed sync calls)
endif()
target_link_libraries(engines PUBLIC core)
foreach(name IN LISTS built_engines)
  target_link_libraries(engines PUBLIC engine_${name})
endforeach()
