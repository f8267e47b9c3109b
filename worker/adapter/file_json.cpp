#include "worker/adapter/file_json.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/ordered_json.hpp"
#include "ipc/control/transport/excess.hpp"

namespace leasehold {

Result<nlohmann::ordered_json> parse_file_object(std::string_view text, std::string_view path) {
  if (const auto excess = control::exceeded_limit(text, control::kRequestLimits))
    return fail(Errc::FileCorrupt, fmt::format("{}: its JSON has {}", path, *excess));
  Result<nlohmann::ordered_json> parsed = parse_ordered_json(text);
  if (parsed && parsed->is_object()) return parsed;
  return fail(Errc::FileCorrupt, fmt::format("{}: is not a JSON object", path));
}

}  // namespace leasehold
