#include "common/expects.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "common/log.hpp"

namespace leasehold {

void contract_violated(const char* kind, const char* what, std::source_location where) {
  const std::string line = fmt::format("{} violated: {} ({}:{}, {})", kind, what, where.file_name(),
                                       where.line(), where.function_name());
  if (!write_last_line(line)) std::fprintf(stderr, "%s\n", line.c_str());
  std::abort();
}

}  // namespace leasehold
