#include "tools/cli/report_file.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

using namespace leasehold;
using cli::ReportFile;

namespace {

/// A temporary folder, removed at the end.
class Folder {
 public:
  Folder() {
    std::string path = std::filesystem::temp_directory_path() / "leasehold-report-XXXXXX";
    REQUIRE(::mkdtemp(path.data()) != nullptr);
    path_ = path;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string file(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("report file: the old contents stay until the first write") {
  const Folder folder;
  const std::string path = folder.file("report");
  std::ofstream(path) << "a long old report";
  const auto report = ReportFile::open(path);
  REQUIRE(report);
  CHECK(text_of(path) == "a long old report");
  CHECK(report->write("short"));
  CHECK(text_of(path) == "short");
}

TEST_CASE("report file: a path that cannot be opened fails at once") {
  const Folder folder;
  CHECK(ReportFile::open(folder.file("none/report")).error().code == Errc::FileNotFound);
  CHECK_FALSE(ReportFile::open(folder.file("")));  // the folder
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
