#include "common/cli/version.hpp"

namespace leasehold {

std::string_view version() {
  return LEASEHOLD_VERSION;
}

}  // namespace leasehold
