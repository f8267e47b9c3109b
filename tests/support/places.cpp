#include "tests/support/places.hpp"

#include <poll.h>

#include <cstdlib>
#include <filesystem>

namespace leasehold {

std::string source_dir() {
  return LEASEHOLD_SOURCE_DIR;
}

std::string program_dir() {
  return LEASEHOLD_BIN_DIR;
}

std::string test_data_path(const std::string& relative) {
  const char* root = std::getenv("LEASEHOLD_TEST_DATA");
  const std::filesystem::path base = root != nullptr ? root : source_dir() + "/../shared";
  for (const std::filesystem::path& folder :
       {base, std::filesystem::path(source_dir() + "/tests/data")})
    if (std::filesystem::exists(folder / relative)) return (folder / relative).string();
  return {};
}

bool eventually(const std::function<bool()>& holds) {
  for (int tries = 0; tries < 12'000; ++tries) {
    if (holds()) return true;
    ::poll(nullptr, 0, 5);
  }
  return false;
}

}  // namespace leasehold
