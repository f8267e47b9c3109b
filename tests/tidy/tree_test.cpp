// The rules, applied to this tree.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/support/test_paths.hpp"
#include "tests/tidy/check_none.hpp"
#include "tests/tidy/rules.hpp"

using namespace leasehold::tidy;

namespace {

const Sources& tree() {
  static const Sources sources = read_sources(leasehold::source_dir());
  return sources;
}

bool tree_has(std::string_view path) {
  return std::ranges::any_of(tree(), [&](const SourceFile& file) { return file.path == path; });
}

}  // namespace

TEST_CASE("tidy: the tree was read") {
  CHECK(tree().size() > 100);
  for (const char* path :
       {"common/fault_point.hpp", "ipc/segment/launch_site.hpp", "ipc/segment/thread_gate.hpp",
        "kernels/backend.hpp", "tests/tidy/rules.cpp"})
    CHECK(tree_has(path));
}

TEST_CASE("tidy: no kernel and no copy outside the door") {
  check_none(device_calls_outside_launcher(tree()));
}

TEST_CASE("tidy: only a permit opens a handle to leased memory") {
  check_none(handles_opened_outside_gate(tree()));
}

TEST_CASE("tidy: permits are held only where units run") {
  check_none(permits_outside_units(tree()));
}

TEST_CASE("tidy: broker and worker map nothing that could show leased bytes") {
  check_none(plain_mappings_outside_ipc(tree()));
}

TEST_CASE("tidy: includes follow the layers, from the root") {
  check_none(layering_violations(tree()));
}

TEST_CASE("tidy: no file is longer than 400 lines") {
  check_none(files_too_long(tree()));
}

TEST_CASE("tidy: nothing is marked as unfinished") {
  check_none(todo_markers(tree()));
}

TEST_CASE("tidy: every fault point is reached by some program") {
  check_none(unreached_fault_sites(tree()));
}

TEST_CASE("tidy: every launch site is used by a backend or the engine") {
  check_none(unused_launch_sites(tree()));
}

TEST_CASE("tidy: TRY is the one macro") {
  check_none(macros_other_than_try(tree()));
}

TEST_CASE("tidy: no TRY leaves members of a braced initialiser behind") {
  check_none(try_in_braces(tree()));
}

TEST_CASE("tidy: no program aborts because it cannot be heard") {
  check_none(throwing_prints(tree()));
}

TEST_CASE("tidy: no test sleeps") {
  check_none(sleeps_in_tests(tree()));
}
