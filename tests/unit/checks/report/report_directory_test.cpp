#include "tests/checks/report/report_directory.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/support/temporary_directory.hpp"

using namespace leasehold;

TEST_CASE("report directory: creates itself and one file per suffix") {
  const auto parent = TemporaryDirectory::create("report-directory");
  REQUIRE(parent);
  const std::string path = parent->path() / "out";

  const auto reports = ReportDirectory::open(path, "batch", {"json", "txt"});

  REQUIRE(reports);
  REQUIRE(reports->write("json", "{}\n"));
  std::ifstream file(path + "/batch.json");
  CHECK(std::string(std::istreambuf_iterator<char>(file), {}) == "{}\n");
  CHECK(std::filesystem::exists(path + "/batch.txt"));
}

TEST_CASE("report directory: a missing parent directory is an error before the work starts") {
  CHECK(ReportDirectory::open("/nowhere/out", "batch", {"json"}).error().code ==
        Errc::FileNotFound);
}

TEST_CASE("report directory: without a path, write does nothing") {
  const auto reports = ReportDirectory::open("", "batch", {"json"});
  REQUIRE(reports);
  CHECK(reports->write("json", "{}"));
}
