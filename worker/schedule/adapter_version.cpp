#include "worker/schedule/adapter_version.hpp"

#include <fmt/format.h>

namespace leasehold {

Result<void> check_version(const RequestAdapter& wanted, const LoadedAdapter& loaded) {
  if (wanted.version != 0 && wanted.version != loaded.version) {
    return std::unexpected(
        Error{Errc::UnknownAdapter,
              fmt::format("version {} of adapter {} was replaced by version {}; send the request "
                          "again",
                          wanted.version, loaded.name, loaded.version),
              FailureScope::Adapter});
  }
  if (wanted.continued.empty() || wanted.continued == loaded.digest.hex()) return {};
  return std::unexpected(
      Error{Errc::UnknownAdapter,
            fmt::format("the text began under another version of adapter {} than {}, the newest "
                        "one; send the request again without its tokens",
                        loaded.name, loaded.version),
            FailureScope::Adapter});
}

}  // namespace leasehold
