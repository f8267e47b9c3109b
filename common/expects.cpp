#include "common/expects.hpp"

#include <cstdio>
#include <cstdlib>

namespace leasehold {

void contract_violated(const char* kind, const char* what, std::source_location where) {
  std::fprintf(stderr, "%s violated: %s (%s:%u, %s)\n", kind, what, where.file_name(),
               static_cast<unsigned>(where.line()), where.function_name());
  std::abort();
}

}  // namespace leasehold
