#include "tests/checks/report/report_directory.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "common/expects.hpp"

namespace leasehold {

Result<ReportDirectory> ReportDirectory::open(const std::string& path, const std::string& name,
                                              const std::vector<std::string>& suffixes) {
  ReportDirectory directory;
  if (path.empty()) return directory;
  constexpr mode_t kMode = 0777;  // reduced by the umask
  if (::mkdir(path.c_str(), kMode) != 0 && errno != EEXIST) {
    return fail_file("creating " + path, errno);
  }
  for (const std::string& suffix : suffixes) {
    auto file = TRY(ReportFile::open(path + "/" + name + "." + suffix));
    directory.files_.emplace_back(suffix, std::move(file));
  }
  return directory;
}

Result<void> ReportDirectory::write(std::string_view suffix, std::string_view text) const {
  if (files_.empty()) return {};
  const auto found = std::ranges::find(
      files_, suffix, [](const auto& file) { return std::string_view(file.first); });
  expects(found != files_.end(), "the report has a file with this suffix");
  return found->second.write(text);
}

}  // namespace leasehold
