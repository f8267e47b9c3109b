#include "tests/checks/report/report_file.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>

#include "tests/support/temporary_directory.hpp"

using namespace leasehold;

namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("report file: the old contents stay until the first write") {
  const auto folder = TemporaryDirectory::create("report").value();
  const std::string path = folder.path() / "report";
  std::ofstream(path) << "a long old report";
  const auto report = ReportFile::open(path);
  REQUIRE(report);
  CHECK(text_of(path) == "a long old report");
  CHECK(report->write("short"));
  CHECK(text_of(path) == "short");
}

TEST_CASE("report file: each write replaces the contents") {
  const auto folder = TemporaryDirectory::create("report").value();
  const auto report = ReportFile::open(folder.path() / "report");
  REQUIRE(report);
  CHECK(report->write("a long report"));
  CHECK(report->write("short"));
  CHECK(text_of(folder.path() / "report") == "short");
}

TEST_CASE("report file: a path that cannot be opened fails at once") {
  const auto folder = TemporaryDirectory::create("report").value();
  CHECK(ReportFile::open(folder.path() / "none/report").error().code == Errc::FileNotFound);
  CHECK_FALSE(ReportFile::open(folder.path()));  // the folder
}

TEST_CASE("report file: a full disk is DiskFull") {
  const auto report = ReportFile::open("/dev/full");
  REQUIRE(report);
  CHECK(report->write("x").error().code == Errc::DiskFull);
}

TEST_CASE("report file: a device without a length can be written") {
  const auto report = ReportFile::open("/dev/null");
  REQUIRE(report);
  CHECK(report->write("x"));
}
